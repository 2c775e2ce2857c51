#include <algorithm>

#include "cls_zlog/stripe/layout.h"
#include "cls_zlog/stripe/stripe.h"

namespace zlog::stripe {
namespace {

// The object's first position at or above `position`.
uint64_t first_at(const Header& header, uint64_t position) {
  const uint64_t above = position - std::min<uint64_t>(position, header.residue);
  return header.residue + (above + header.stride - 1) / header.stride * header.stride;
}

// Adds the entries among a record's positions [first, last].
void add(const Stored& stored, uint32_t stride, uint64_t first, uint64_t last, CountReply* reply) {
  const Record& record = stored.record;
  if (!record.holds_entries()) return;
  for (uint64_t position = first; position <= last; position += stride) {
    const uint32_t i = stored.span.index(position, stride);
    if (!record.written(i)) continue;
    const uint64_t at = record.origin.timestamp;
    reply->entries++;
    reply->bytes += record.bytes_of(i);
    reply->last = position;
    reply->oldest = std::min(reply->oldest.value_or(at), at);
    reply->newest = std::max(reply->newest.value_or(at), at);
  }
}

// Notes the first position of [begin, end), where no record is, that may be unwritten. Where none
// may, records have vanished.
void note_hole(const Header& header, uint64_t begin, uint64_t end, CountReply* reply) {
  const uint64_t hole = first_at(header, header.holes.next(begin));
  if (hole < end && !reply->hole) reply->hole = hole;
}

}  // namespace

Result<CountReply> count(Object& object, const CountRequest& request) {
  Header header;
  ZLOG_TRY(Header::load(object, &header));
  ZLOG_TRY(header.admit(request.epoch));
  CountReply reply;
  reply.end = request.end;
  // What the header does not know of was not stored by a method.
  const uint64_t taken = std::min(request.end, header.highest ? *header.highest + 1 : 0);
  uint64_t next = first_at(header, std::max(request.start, header.trim_point));
  RecordIterator records(object, header, limits::page_records_max);
  for (uint32_t looked_at = 0; next < taken; looked_at++) {
    if (looked_at == limits::count_records_max ||
        records.bytes_fetched() >= limits::walk_bytes_enough) {
      reply.end = next;
      return reply;
    }
    const Stored* stored = nullptr;
    ZLOG_TRY(records.seek(next, &stored));
    if (stored == nullptr || stored->span.first >= taken) break;
    const Span& span = stored->span;
    note_hole(header, next, span.first, &reply);
    const uint64_t end = std::min(span.last, taken - 1);
    add(*stored, header.stride, std::max(span.first, next),
        end - (end - span.first) % header.stride, &reply);
    next = span.last + header.stride;
  }
  note_hole(header, next, request.end, &reply);
  return reply;
}

}  // namespace zlog::stripe
