#include <algorithm>
#include <optional>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/stripe/scan.h"

namespace zlog::stripe {
namespace {

// What a write or fill found at its positions.
struct Claims {
  std::vector<uint32_t> open;  // the positions (as indices) that nothing was ever stored at
  Failure blocked;             // by the first position that is taken by something else
  Failure unknown;             // the first of these that may hold what was to be written

  void block(Code code, uint64_t position) {
    if (blocked.code == kOk) blocked = {code, position};
    if (unknown.code == kOk && code != kReadOnly) unknown = {code, position};
  }
};

// Goes over all positions and sorts them into claims: `judge(stretch, claims)` does it for those
// that may be taken. Above the highest position that is, everything is open and no record need be
// read.
template <typename Judge>
int sort_claims(Object& object, const Header& header, const std::vector<uint64_t>& positions,
                const Judge& judge, Claims* claims) {
  const std::optional<uint64_t> taken = header.taken();
  auto fresh = positions.begin();
  if (taken) fresh = std::upper_bound(fresh, positions.end(), *taken);
  const std::vector<uint64_t> old(positions.begin(), fresh);
  Walk walk(object, header, old);
  while (!walk.done()) {
    Walk::Stretch stretch;
    ZLOG_TRY(walk.next(&stretch));
    ZLOG_TRY(judge(stretch, claims));
  }
  for (size_t i = old.size(); i < positions.size(); i++) {
    claims->open.push_back(static_cast<uint32_t>(i));
  }
  return 0;
}

// Why what is stored keeps others out. Of what is damaged nothing is known: it may be the very entry
// that is written again.
Code blocking_code(const Stored& stored) {
  if (stored.record.kind == RecordKind::kLost) return kLost;
  return stored.record.unreadable() ? kUnreadable : kReadOnly;
}

bool intact(const WriteRequest& request, const std::vector<uint64_t>& positions) {
  for (uint32_t i = 0; i < positions.size(); i++) {
    if (entry_crc(positions[i], request.data_of(i)) != request.crcs[i]) return false;
  }
  return true;
}

// Whether the i-th entry of the request is the record's at `index`, by all that the record tells of
// it.
bool alike(const WriteRequest& request, uint32_t i, const Record& record, uint32_t index) {
  return record.holds_entries() && record.origin.writer == request.writer &&
         record.origin.number + record.numbers[index] == request.number_of(i) &&
         record.crcs[index] == request.crcs[i] &&
         (!record.written(index) || record.bytes_of(index) == request.data_of(i).size());
}

// Sorts out positions that a record covers. Passed over are entries that are there already: the
// same append with the same data, be it damaged or trimmed since. Readers learn the ids of appends,
// so another writer may have stored other data under this one's; such an entry is as foreign as
// any.
int sort_covered(Layout* layout, const WriteRequest& request,
                 const std::vector<uint64_t>& positions, const Spacing& spacing,
                 const Walk::Stretch& stretch, Claims* claims) {
  const Stored& stored = *stretch.stored;
  const Record& record = stored.record;
  for (uint32_t i = stretch.begin; i < stretch.end;) {
    const uint32_t index = spacing.index(stored.span, positions[i]);
    uint32_t count = 0;  // entries in a row that are alike, and whose data is there to be compared
    while (i + count < stretch.end && positions[i + count] == spacing.after(positions[i], count) &&
           alike(request, i + count, record, index + count) && record.written(index + count)) {
      count++;
    }
    if (count == 0) {
      if (!alike(request, i, record, index)) claims->block(blocking_code(stored), positions[i]);
      i++;
      continue;
    }
    std::string buffer;
    std::string_view data;
    ZLOG_TRY(layout->data_of(stored, index, index + count, &buffer, &data));
    for (const uint32_t end = i + count; i < end; i++) {
      const std::string_view found = data.substr(0, request.data_of(i).size());
      const bool other = found != request.data_of(i);
      if (other && entry_crc(positions[i], found) == request.crcs[i]) {
        claims->block(kReadOnly, positions[i]);
      }
      data.remove_prefix(found.size());
    }
  }
  return 0;
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
  const Spacing spacing = header->spacing();
  for (size_t i = 0; i < open.size();) {
    const uint32_t begin = open[i];
    uint32_t end = begin + 1;
    const auto goes_on = [&] {
      return i < open.size() && open[i] == end &&
             positions[end] == spacing.next(positions[end - 1]);
    };
    for (i++; goes_on(); i++) end++;
    ZLOG_TRY(layout.append(batch_of(request, positions, begin, end)));
    header->use({positions[begin], positions[end - 1]});
  }
  return header->save(object);
}

}  // namespace

Result<Fullness> write(Object& object, const WriteRequest& request) {
  const std::vector<uint64_t> positions = request.runs.positions();
  if (!intact(request, positions)) return Failure{-EINVAL};
  Header header;
  ZLOG_TRY(Header::load(object, &header));
  if (!header.owns(request.runs)) return Failure{-EINVAL};

  Layout layout(object, header);
  const auto judge = [&](const Walk::Stretch& stretch, Claims* claims) {
    if (stretch.stored != nullptr) {
      return sort_covered(&layout, request, positions, header.spacing(), stretch, claims);
    }
    for (uint32_t i = stretch.begin; i < stretch.end; i++) {
      if (header.lost(positions[i])) {
        claims->block(kLost, positions[i]);
      } else if (positions[i] < header.trim_point) {
        claims->block(kReadOnly, positions[i]);
      } else {
        claims->open.push_back(i);
      }
    }
    return 0;
  };
  Claims claims;
  ZLOG_TRY(sort_claims(object, header, positions, judge, &claims));
  if (claims.open.empty() && claims.blocked.code == kOk) return header.fullness();
  ZLOG_TRY(claims.unknown);
  ZLOG_TRY(header.admit(request.epoch));
  ZLOG_TRY(claims.blocked);
  ZLOG_TRY(header.take(positions[claims.open.back()]));
  ZLOG_TRY(store(object, &header, request, positions, claims.open));
  return header.fullness();
}

Result<Empty> fill(Object& object, const FillRequest& request) {
  Header header;
  ZLOG_TRY(enter(object, request.epoch, request.runs, &header));
  const std::vector<uint64_t> positions = request.runs.positions();
  const auto judge = [&](const Walk::Stretch& stretch, Claims* claims) {
    const Stored* const stored = stretch.stored;
    for (uint32_t i = stretch.begin; i < stretch.end; i++) {
      const uint64_t position = positions[i];
      if (position < header.trim_point) continue;
      if (stored == nullptr && header.lost(position)) {
        claims->block(kLost, position);
        continue;
      }
      if (stored == nullptr) {
        claims->open.push_back(i);
        continue;
      }
      const uint32_t index = header.spacing().index(stored->span, position);
      const EntryState state = stored->record.state_of(index);
      if (state != EntryState::kFilled && state != EntryState::kTrimmed) {
        claims->block(blocking_code(*stored), position);
      }
    }
    return 0;
  };
  Claims claims;
  ZLOG_TRY(sort_claims(object, header, positions, judge, &claims));
  ZLOG_TRY(claims.blocked);
  if (claims.open.empty()) return Empty();
  std::vector<uint64_t> holes;
  holes.reserve(claims.open.size());
  for (const uint32_t i : claims.open) holes.push_back(positions[i]);
  ZLOG_TRY(header.take(holes.back()));
  Layout layout(object, header);
  for (const Span& span : spans_of(holes, header.spacing())) {
    ZLOG_TRY(layout.put_fill(span, {request.timestamp, request.writer, 0}, request.reason));
    header.use(span);
  }
  ZLOG_TRY(header.save(object));
  return Empty();
}

}  // namespace zlog::stripe
