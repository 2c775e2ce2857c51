#include <algorithm>
#include <cerrno>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/stripe/layout.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/messages.h"
#include "cls_zlog/stripe/stripe.h"

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

// Frees the records below the header's trim point, at most `records_max` of them. The record that
// the point cuts loses the data below it; a cut run without entries is left, since the point
// decides.
int free_below(Object& object, Header* header, uint32_t records_max, bool* more) {
  Layout layout(object, *header);
  RecordIterator records(object, *header, 1);
  std::string first;
  std::string last;
  uint64_t removed = 0;
  *more = false;
  for (uint64_t from = 0;;) {
    const Stored* stored = nullptr;
    if (const int r = records.seek(from, &stored); r < 0) return r;
    if (stored == nullptr || stored->span.first >= header->trim_point) break;
    if (removed == records_max || records.bytes_fetched() >= limits::walk_bytes_enough) {
      *more = true;
      break;
    }
    if (stored->span.last >= header->trim_point) {
      if (!stored->record.holds_entries()) break;
      const int r = layout.trim(
          *stored, positions_below(*stored, header->trim_point, header->stride));
      if (r < 0) return r;
      break;
    }
    if (const int r = layout.free(*stored); r < 0) return r;
    if (removed++ == 0) first = stored->key;
    last = stored->key;
    from = stored->span.last + 1;
  }
  return removed == 0 ? 0 : layout.remove(first, last, removed);
}

}  // namespace

int trim(Object& object, std::string_view in, std::string* out) {
  TrimRequest request;
  if (const int r = TrimRequest::decode(in, &request); r < 0) return r;
  Header header;
  if (const int r = Header::load(object, &header); r < 0) return r;
  if (!header.owns(request.runs)) return -EINVAL;
  if (check_epoch(header, request.epoch, out) != kOk) return kStaleEpoch;

  const std::vector<uint64_t> asked = request.runs.positions();
  const std::vector<uint64_t> positions(
      std::lower_bound(asked.begin(), asked.end(), header.trim_point), asked.end());
  if (positions.empty()) return kOk;
  Layout layout(object, header);
  Walk walk(object, header, positions);
  while (!walk.done()) {
    Walk::Stretch stretch;
    if (const int r = walk.next(&stretch); r < 0) return r;
    const std::vector<uint64_t> part(positions.begin() + stretch.begin,
                                     positions.begin() + stretch.end);
    if (stretch.stored != nullptr) {
      if (const int r = layout.trim(*stretch.stored, part); r < 0) return r;
      continue;
    }
    for (const Span& span : spans_of(part, header.stride)) {
      if (const int r = layout.put_mark(span, RecordKind::kTrim); r < 0) return r;
    }
  }
  header.raise(positions.back());
  return header.save(object);
}

int trim_to(Object& object, std::string_view in, std::string* out) {
  TrimToRequest request;
  if (const int r = TrimToRequest::decode(in, &request); r < 0) return r;
  Header header;
  if (const int r = Header::load(object, &header); r < 0) return r;
  if (check_epoch(header, request.epoch, out) != kOk) return kStaleEpoch;

  header.trim_point = std::max(header.trim_point, request.position);
  bool more = false;
  const int r = free_below(object, &header, request.records_max, &more);
  if (r < 0) return r;
  *out = encode_more_reply(more);
  return header.save(object);
}

}  // namespace zlog::stripe
