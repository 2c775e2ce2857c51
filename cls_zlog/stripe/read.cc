#include "cls_zlog/stripe/answering.h"

namespace zlog::stripe {

int Answering::add_written(const Stored& stored, uint32_t first, uint32_t count) {
  const Record& record = stored.record;
  if (!takes_data_) {
    const wire::Column<uint32_t> no_ends;
    builder_.add({record.origin.timestamp, record.origin.writer, record.origin.number, no_ends,
                  record.crcs, record.numbers, first, count, tags_of(stored)});
    return 0;
  }
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
                record.crcs, record.numbers, first, answered - first, tags_of(stored)});
  for (uint32_t index = answered; index < first + count; index++) {
    ReadEntry entry = entry_of(record, index);
    if (record.bytes_of(index) > 0) entry.state = EntryState::kLost;
    builder_.add(entry);
  }
  return 0;
}

// Reads a record's tags once, also if its entries are added one by one.
const TagsReader* Answering::tags_of(const Stored& stored) {
  if (!builder_.with_tags() || !stored.record.tags.any()) return nullptr;
  if (!tags_ || tags_last_ != stored.span.last) {
    tags_value_ = stored.value;
    tags_last_ = stored.span.last;
    tags_.emplace(stored.record.tags);
  }
  return &*tags_;
}

Result<ReadReplyBuilder> read(Object& object, Header& header, const ReadRequest& request) {
  const std::vector<uint64_t> positions = request.runs.positions();
  Answering reply(
      object, header, request.blocks, !request.without_data,
      ReadReplyBuilder(header.taken(), request.with_ids, request.runs.count(), request.tags));
  ZLOG_TRY(Scan(object, header, positions, request.bytes_max, &reply).run());
  return std::move(reply.builder());
}

}  // namespace zlog::stripe
