#include <algorithm>

#include "cls_zlog/stripe/scan.h"

namespace zlog::stripe {
namespace {

// Those of a stored record's positions that lie below `point`.
std::vector<uint64_t> positions_below(const Stored& stored, uint64_t point, uint32_t stride) {
  std::vector<uint64_t> positions;
  for (uint64_t p = stored.span.first; p < point && p <= stored.span.last; p += stride) {
    positions.push_back(p);
  }
  return positions;
}

// Raises the header's trim point, and frees the records below it, at most `records_max` of them.
// The record that the point cuts loses the data below it; a cut run without entries is left, since
// the point decides. The point goes up to what can't be read, which is refused when it comes first.
Failure trim_below(Object& object, uint64_t point, uint32_t records_max, Header* header,
                   bool* more) {
  const uint64_t installed = header->trim_point;
  header->trim_point = std::max(installed, point);
  Layout layout(object, *header);
  RecordIterator records(object, *header, 1);
  std::string first;
  std::string last;
  uint64_t removed = 0;
  *more = false;
  for (uint64_t from = 0;;) {
    const Stored* stored = nullptr;
    ZLOG_TRY(records.seek(from, &stored));
    if (stored == nullptr || stored->span.first >= header->trim_point) break;
    const bool unreadable = stored->record.unreadable();
    if (unreadable && removed == 0) return {kUnreadable, stored->span.first};
    if (unreadable) header->trim_point = std::max(installed, stored->span.first);
    if (unreadable || removed == records_max ||
        records.bytes_fetched() >= limits::walk_bytes_enough) {
      *more = true;
      break;
    }
    if (stored->span.last >= header->trim_point) {
      if (!stored->record.holds_entries()) break;
      ZLOG_TRY(layout.trim(*stored, positions_below(*stored, header->trim_point, header->stride)));
      break;
    }
    ZLOG_TRY(layout.free(*stored));
    if (removed++ == 0) first = stored->key;
    last = stored->key;
    from = stored->span.last + 1;
  }
  return {removed == 0 ? 0 : layout.remove(first, last, removed)};
}

// kUnreadable, with the first such position, when a later version stored one of them.
Failure check_readable(Object& object, const Header& header,
                       const std::vector<uint64_t>& positions) {
  Walk walk(object, header, positions);
  while (!walk.done()) {
    Walk::Stretch stretch;
    ZLOG_TRY(walk.next(&stretch));
    if (stretch.stored != nullptr && stretch.stored->record.unreadable()) {
      return {kUnreadable, positions[stretch.begin]};
    }
  }
  return {};
}

}  // namespace

Result<Empty> trim(Object& object, const TrimRequest& request) {
  Header header;
  ZLOG_TRY(enter(object, request.epoch, request.runs, &header));
  const std::vector<uint64_t> asked = request.runs.positions();
  const std::vector<uint64_t> positions(
      std::lower_bound(asked.begin(), asked.end(), header.trim_point), asked.end());
  if (positions.empty()) return Empty();
  ZLOG_TRY(header.take(positions.back()));
  ZLOG_TRY(check_readable(object, header, positions));
  Layout layout(object, header);
  Walk walk(object, header, positions);
  while (!walk.done()) {
    Walk::Stretch stretch;
    ZLOG_TRY(walk.next(&stretch));
    const std::vector<uint64_t> part(positions.begin() + stretch.begin,
                                     positions.begin() + stretch.end);
    if (stretch.stored != nullptr) {
      ZLOG_TRY(layout.trim(*stretch.stored, part));
      continue;
    }
    for (const Span& span : spans_of(part, header.stride)) ZLOG_TRY(layout.put_trimmed(span));
  }
  for (const Span& span : spans_of(positions, header.stride)) header.use(span);
  ZLOG_TRY(header.save(object));
  return Empty();
}

Result<MoreReply> trim_to(Object& object, const TrimToRequest& request) {
  Header header;
  ZLOG_TRY(Header::load(object, &header));
  ZLOG_TRY(header.admit(request.epoch));
  MoreReply reply;
  ZLOG_TRY(trim_below(object, request.position, request.records_max, &header, &reply.more));
  header.holes.forget_below(header.trim_point);
  ZLOG_TRY(header.save(object));
  return reply;
}

}  // namespace zlog::stripe
