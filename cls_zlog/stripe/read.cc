#include "cls_zlog/stripe/scan.h"

namespace zlog::stripe {
namespace {

// A read's reply, and behind it the data, which the host answers with.
class Answering {
 public:
  Answering(Object& object, Header& header, const ReadRequest& request)
      : layout_(object, header),
        takes_blocks_(request.blocks),
        builder_(header.taken(), request.with_ids, request.runs.count()) {}

  void add(const ReadEntry& entry) { builder_.add(entry); }

  int add_written(const Stored& stored, uint32_t first, uint32_t count) {
    const Record& record = stored.record;
    if (record.compressed() && !takes_blocks_) {
      ReadEntry unreadable;
      unreadable.state = EntryState::kUnreadable;
      while (count-- > 0) builder_.add(unreadable);
      return 0;
    }
    const bool once_more = record.compressed() && stored.key == block_;
    uint32_t answered = first + count;
    if (!once_more) ZLOG_TRY(layout_.answer(stored, first, first + count, &answered));
    if (record.compressed() && answered > first) {
      const Block& block = record.block;
      builder_.add_block({0, count, block.compression, block.plain_bytes,
                          block.skip + record.begin_of(first), once_more ? 0 : block.stored_bytes});
      block_ = stored.key;
    }
    builder_.add({record.origin.timestamp, record.origin.writer, record.origin.number, record.ends,
                  record.crcs, record.numbers, first, answered - first});
    for (uint32_t index = answered; index < first + count; index++) {
      ReadEntry entry = entry_of(record, index);
      if (record.bytes_of(index) > 0) entry.state = EntryState::kLost;
      builder_.add(entry);
    }
    return 0;
  }

  uint64_t data_bytes() const { return builder_.data_bytes(); }
  uint32_t count() const { return builder_.count(); }
  ReadReplyBuilder take() { return std::move(builder_); }

 private:
  Layout layout_;
  const bool takes_blocks_;
  std::string block_;  // the key of the last one that was answered
  ReadReplyBuilder builder_;
};

}  // namespace

Result<ReadReplyBuilder> read(Object& object, const ReadRequest& request) {
  Header header;
  ZLOG_TRY(enter(object, request.epoch, request.runs, &header));
  const std::vector<uint64_t> positions = request.runs.positions();
  Answering reply(object, header, request);
  ZLOG_TRY(Scan(object, header, positions, request.bytes_max, &reply).run());
  return reply.take();
}

}  // namespace zlog::stripe
