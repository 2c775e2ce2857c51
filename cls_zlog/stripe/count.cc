#include <algorithm>

#include "cls_zlog/stripe/scan.h"

namespace zlog::stripe {
namespace {

// Adds the entries among a record's positions from `first` on, which is one of them, to `last`.
void add(const Stored& stored, const Spacing& spacing, uint64_t first, uint64_t last,
         CountReply* reply, BlockTally* blocks) {
  const Record& record = stored.record;
  if (!record.holds_entries()) return;
  const uint64_t before = reply->bytes;
  for (uint64_t position = first; position <= last; position = spacing.next(position)) {
    const uint32_t i = spacing.index(stored.span, position);
    if (!record.written(i)) continue;
    const uint64_t at = record.origin.timestamp;
    reply->entries++;
    reply->bytes += record.bytes_of(i);
    reply->last = position;
    if (!reply->oldest || at < *reply->oldest) {
      reply->oldest = at;
      reply->oldest_at = position;
    }
    if (!reply->newest || at > *reply->newest) {
      reply->newest = at;
      reply->newest_at = position;
    }
  }
  if (!record.compressed() || !record.any_written()) return;
  blocks->data += reply->bytes - before;
  blocks->bytes += record.block.stored_bytes;
}

// Notes what is to be said of [begin, end), where no record is: the first position that may be
// unwritten, and whether records have vanished.
void note_gap(const Header& header, uint64_t begin, uint64_t end, CountReply* reply) {
  const uint64_t hole = header.first_at(header.holes.next(begin));
  if (hole < end && !reply->hole) reply->hole = hole;
  reply->lost = reply->lost || header.lost(begin, end);
}

}  // namespace

int tally(Object& object, const Header& header, uint64_t start, uint64_t end, CountReply* reply,
          BlockTally* blocks) {
  reply->end = end;
  // What the header does not know of was not stored by a method.
  const uint64_t taken = std::min(end, header.highest ? *header.highest + 1 : 0);
  uint64_t next = header.first_at(start);
  RecordIterator records(object, header, limits::page_records_max);
  for (uint32_t looked_at = 0; next < taken; looked_at++) {
    if (looked_at == limits::count_records_max ||
        records.bytes_fetched() >= limits::walk_bytes_enough) {
      reply->end = next;
      return 0;
    }
    const Stored* stored = nullptr;
    ZLOG_TRY(records.seek(next, &stored));
    if (stored == nullptr || stored->span.first >= taken) break;
    const Span& span = stored->span;
    note_gap(header, next, span.first, reply);
    reply->lost = reply->lost || stored->record.kind == RecordKind::kLost;
    add(*stored, header.spacing(), std::max(span.first, next), std::min(span.last, taken - 1),
        reply, blocks);
    next = header.spacing().next(span.last);
  }
  note_gap(header, next, end, reply);
  return 0;
}

Result<CountReply> count(Object& object, const CountRequest& request) {
  Header header;
  ZLOG_TRY(Header::load(object, &header));
  ZLOG_TRY(header.admit(request.epoch));
  CountReply reply;
  const uint64_t start = std::max(request.start, header.trim_point);
  BlockTally blocks;
  ZLOG_TRY(tally(object, header, start, request.end, &reply, &blocks));
  return reply;
}

}  // namespace zlog::stripe
