#include <algorithm>

#include "cls_zlog/stripe/scan.h"
#include "cls_zlog/stripe/tag_index.h"

namespace zlog::stripe {
namespace {

// Returns the positions of a record below `point`.
std::vector<uint64_t> positions_below(const Stored& stored, uint64_t point,
                                      const Striping& striping) {
  std::vector<uint64_t> positions;
  for (uint64_t p = stored.span.first; p < point && p <= stored.span.last; p = striping.next(p)) {
    positions.push_back(p);
  }
  return positions;
}

// Counts the entries from `start` on, as far as one call can read, and lowers the header's counters
// to the result. Lost records are still in the counters, which retention by size uses.
int recount(Object& object, uint64_t start, Header* header) {
  CountReply found;
  BlockTally blocks;
  ZLOG_TRY(tally(object, *header, start, limits::position_max + 1, &found, &blocks));
  header->entries = std::min(header->entries, found.entries);
  header->bytes = std::min(header->bytes, found.bytes);
  header->block_data = std::min(header->block_data, blocks.data);
  header->block_bytes = std::min(header->block_bytes, blocks.bytes);
  return 0;
}

// Raises the header's trim point, and frees up to `records_max` records below it. A record that
// extends above the trim point loses only its data below; if it has no entries, it does not change.
// The trim point stops at an unreadable record. If the first record is unreadable, returns
// kUnreadable.
Failure trim_below(Object& object, uint64_t point, uint32_t records_max, Header* header,
                   bool* more) {
  const uint64_t installed = header->trim_point;
  header->trim_point = std::max(installed, point);
  Layout layout(object, *header);
  RecordIterator records(object, *header, 1, true);
  std::string first;
  std::string last;
  uint64_t removed = 0;
  uint64_t from = 0;
  uint64_t known = installed;  // records lost below it were counted earlier
  bool lost = false;
  *more = false;
  while (true) {
    const Stored* stored = nullptr;
    ZLOG_TRY(records.seek(from, &stored));
    const uint64_t next = stored == nullptr ? header->trim_point : stored->span.first;
    lost = lost || header->lost(known, std::min(next, header->trim_point));
    if (next >= header->trim_point) break;
    lost = lost || stored->record.kind == RecordKind::kLost;
    const bool unreadable = stored->record.unreadable();
    if (unreadable && removed == 0) return {kUnreadable, stored->span.first};
    if (unreadable) header->trim_point = std::max(installed, stored->span.first);
    if (unreadable || removed == records_max ||
        records.bytes_fetched() >= limits::walk_bytes_enough) {
      *more = true;
      break;
    }
    if (stored->span.last >= header->trim_point) {
      if (!stored->record.holds_entries() && !stored->record.sparse()) break;
      const uint64_t end = header->trim_point;
      ZLOG_TRY(layout.trim(*stored, positions_below(*stored, end, header->striping())));
      break;
    }
    ZLOG_TRY(layout.free(*stored));
    if (removed++ == 0) first = stored->key;
    last = stored->key;
    known = from = stored->span.last + 1;
  }
  if (lost) ZLOG_TRY(recount(object, *more ? from : header->trim_point, header));
  return {removed == 0 ? 0 : layout.remove(first, last, removed)};
}

// Returns kUnreadable (with the first such position) if a later version wrote a position's record.
// Sets `lost` if a position is lost.
Failure check_readable(Object& object, const Header& header, const std::vector<uint64_t>& positions,
                       bool* lost) {
  Walk walk(object, header, positions);
  while (!walk.done()) {
    Walk::Stretch stretch;
    ZLOG_TRY(walk.next(&stretch));
    if (stretch.stored != nullptr && stretch.stored->record.unreadable()) {
      return {kUnreadable, positions[stretch.begin]};
    }
    *lost = *lost || (stretch.stored == nullptr
                          ? header.lost(positions[stretch.begin], positions[stretch.end - 1] + 1)
                          : stretch.stored->record.kind == RecordKind::kLost);
  }
  return {};
}

}  // namespace

Result<Empty> trim(Object& object, Header& header, const TrimRequest& request) {
  const std::vector<uint64_t> asked = request.runs.positions();
  const std::vector<uint64_t> positions(
      std::lower_bound(asked.begin(), asked.end(), header.trim_point), asked.end());
  if (positions.empty()) return Empty();
  ZLOG_TRY(header.check_thawed());
  ZLOG_TRY(header.take(positions.back()));
  bool lost = false;
  ZLOG_TRY(check_readable(object, header, positions, &lost));
  if (lost) ZLOG_TRY(recount(object, header.trim_point, &header));
  Layout layout(object, header);
  Walk walk(object, header, positions, true);
  while (!walk.done()) {
    Walk::Stretch stretch;
    ZLOG_TRY(walk.next(&stretch));
    const std::vector<uint64_t> part(positions.begin() + stretch.begin,
                                     positions.begin() + stretch.end);
    if (stretch.stored != nullptr) {
      ZLOG_TRY(layout.trim(*stretch.stored, part));
      continue;
    }
    for (const Span& span : spans_of(part, header.striping())) ZLOG_TRY(layout.put_trimmed(span));
  }
  for (const Span& span : spans_of(positions, header.striping())) header.use(span);
  return failure_of(header.save(object));
}

Result<MoreReply> trim_to(Object& object, Header& header, const TrimToRequest& request) {
  const std::string before = to_stored(Header::kAttribute, header);
  const uint64_t point = std::min(request.position, header.end());  // it holds nothing above
  MoreReply reply;
  ZLOG_TRY(trim_below(object, point, request.records_max, &header, &reply.more));
  if (!reply.more) {
    header.holes.forget_below(header.trim_point);
    ZLOG_TRY(forget_chunks(object, &header));
  }
  if (to_stored(Header::kAttribute, header) != before) ZLOG_TRY(header.save(object));
  return reply;
}

}  // namespace zlog::stripe
