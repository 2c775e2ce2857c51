#include "cls_zlog/stripe/scan.h"

namespace zlog::stripe {
namespace {

// A read's reply, and behind it the data, which the host answers with.
class Answering {
 public:
  Answering(Object& object, Header& header, const ReadRequest& request)
      : layout_(object, header), builder_(header.taken(), request.with_ids, request.runs.count()) {}

  void add(const ReadEntry& entry) { builder_.add(entry); }

  int add_written(const Stored& stored, uint32_t first, uint32_t count) {
    const Record& record = stored.record;
    uint32_t answered = 0;
    ZLOG_TRY(layout_.answer(stored, first, first + count, &answered));
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
