#include <algorithm>
#include <cerrno>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/stripe/layout.h"
#include "cls_zlog/wire/messages.h"
#include "cls_zlog/stripe/stripe.h"

namespace zlog::stripe {
namespace {

// What a write or fill found at its positions.
struct Claims {
  std::vector<uint32_t> open;  // the positions (as indices) that nothing was ever stored at
  bool blocked = false;        // one is taken by something else
  uint64_t blocked_by = 0;     // the first such position

  void block(uint64_t position) {
    if (!blocked) blocked_by = position;
    blocked = true;
  }
};

// Goes over all positions and sorts them into claims: `judge(stretch, claims)` is asked about
// those that may be taken. Above the highest position that is, everything is open and no record
// need be read.
template <typename Judge>
int sort_claims(Object& object, const Header& header, const std::vector<uint64_t>& positions,
                const Judge& judge, Claims* claims) {
  const Highest taken = header.taken();
  auto fresh = positions.begin();
  if (taken.has) fresh = std::upper_bound(fresh, positions.end(), taken.position);
  const std::vector<uint64_t> old(positions.begin(), fresh);
  Walk walk(object, header, old);
  while (!walk.done()) {
    Walk::Stretch stretch;
    if (const int r = walk.next(&stretch); r < 0) return r;
    for (uint32_t i = stretch.begin; i < stretch.end; i++) judge(stretch.stored, i, claims);
  }
  for (size_t i = old.size(); i < positions.size(); i++) {
    claims->open.push_back(static_cast<uint32_t>(i));
  }
  return 0;
}

bool intact(const WriteRequest& request, const std::vector<uint64_t>& positions) {
  for (uint32_t i = 0; i < positions.size(); i++) {
    if (entry_crc(positions[i], request.data_of(i)) != request.crcs[i]) return false;
  }
  return true;
}

// Whether the i-th entry of the request is the one at its position in the record, even if that has
// been trimmed since.
bool same_entry(const WriteRequest& request, uint32_t i, const Record& record, uint32_t index) {
  return record.holds_entries() && record.writer == request.writer &&
         record.number + record.numbers[index] == request.number_of(i);
}

// Entries [begin, end) of the request, which are at positions in a row.
Batch batch_of(const WriteRequest& request, const std::vector<uint64_t>& positions, uint32_t begin,
               uint32_t end) {
  Batch batch;
  batch.origin = {request.timestamp, request.writer, request.number};
  batch.first = positions[begin];
  batch.entries.reserve(end - begin);
  for (uint32_t i = begin; i < end; i++) {
    const auto bytes = static_cast<uint32_t>(request.data_of(i).size());
    batch.entries.push_back({EntryState::kWritten, bytes, request.crcs[i], request.numbers[i]});
  }
  const uint32_t from = request.begin_of(begin);
  batch.data = request.data.substr(from, request.ends[end - 1] - from);
  return batch;
}

int store(Object& object, Header* header, const WriteRequest& request,
          const std::vector<uint64_t>& positions, const std::vector<uint32_t>& open) {
  Layout layout(object, *header);
  for (size_t i = 0; i < open.size();) {
    const uint32_t begin = open[i];
    uint32_t end = begin + 1;
    const auto goes_on = [&] {
      return i < open.size() && open[i] == end &&
             positions[end] == positions[end - 1] + header->stride;
    };
    for (i++; goes_on(); i++) end++;
    if (const int r = layout.append(batch_of(request, positions, begin, end)); r < 0) return r;
  }
  header->raise(positions[open.back()]);
  return header->save(object);
}

}  // namespace

int write(Object& object, std::string_view in, std::string* out) {
  WriteRequest request;
  if (const int r = WriteRequest::decode(in, &request); r < 0) return r;
  const std::vector<uint64_t> positions = request.runs.positions();
  if (!intact(request, positions)) return -EINVAL;
  Header header;
  if (const int r = Header::load(object, &header); r < 0) return r;
  if (!header.owns(request.runs)) return -EINVAL;

  const auto judge = [&](const Stored* stored, uint32_t i, Claims* claims) {
    const uint64_t position = positions[i];
    if (stored != nullptr &&
        same_entry(request, i, stored->record, stored->span.index(position, header.stride))) {
      return;
    }
    if (stored == nullptr && position >= header.trim_point) {
      claims->open.push_back(i);
    } else {
      claims->block(position);
    }
  };
  Claims claims;
  const int r = sort_claims(object, header, positions, judge, &claims);
  if (r < 0) return r;
  if (claims.open.empty() && !claims.blocked) {
    *out = header.fullness().encode();
    return kOk;
  }
  if (check_epoch(header, request.epoch, out) != kOk) return kStaleEpoch;
  if (claims.blocked) {
    *out = encode_position_reply(claims.blocked_by);
    return kReadOnly;
  }
  if (const int stored = store(object, &header, request, positions, claims.open); stored < 0) {
    return stored;
  }
  *out = header.fullness().encode();
  return kOk;
}

int fill(Object& object, std::string_view in, std::string* out) {
  FillRequest request;
  if (const int r = FillRequest::decode(in, &request); r < 0) return r;
  Header header;
  if (const int r = Header::load(object, &header); r < 0) return r;
  if (!header.owns(request.runs)) return -EINVAL;
  if (check_epoch(header, request.epoch, out) != kOk) return kStaleEpoch;

  const std::vector<uint64_t> positions = request.runs.positions();
  const auto judge = [&](const Stored* stored, uint32_t i, Claims* claims) {
    const uint64_t position = positions[i];
    if (position < header.trim_point) return;
    if (stored == nullptr) {
      claims->open.push_back(i);
      return;
    }
    const EntryState state = stored->record.state_of(stored->span.index(position, header.stride));
    if (state == EntryState::kWritten || state == EntryState::kLost) claims->block(position);
  };
  Claims claims;
  if (const int r = sort_claims(object, header, positions, judge, &claims); r < 0) return r;
  if (claims.blocked) {
    *out = encode_position_reply(claims.blocked_by);
    return kReadOnly;
  }
  if (claims.open.empty()) return kOk;
  std::vector<uint64_t> holes;
  for (const uint32_t i : claims.open) holes.push_back(positions[i]);
  Layout layout(object, header);
  for (const Span& span : spans_of(holes, header.stride)) {
    const RecordOrigin origin = {request.timestamp, request.writer, 0};
    if (const int r = layout.put_fill(span, origin, request.reason); r < 0) return r;
  }
  header.raise(holes.back());
  return header.save(object);
}

}  // namespace zlog::stripe
