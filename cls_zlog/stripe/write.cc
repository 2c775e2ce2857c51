#include <algorithm>
#include <optional>

#include "cls_zlog/stripe/new_entries.h"
#include "cls_zlog/stripe/scan.h"

namespace zlog::stripe {
namespace {

// What a write or fill found at its positions.
struct Claims {
  std::vector<uint32_t> open;  // indices of unwritten positions
  Failure blocked;             // the first position taken by something else
  Failure unknown;             // the first taken position that may hold the same entry
  Failure same_id;             // the first whose compressed data has to be compared

  // Claims a position without a record.
  void claim(uint32_t i, uint64_t position, bool lost) {
    if (lost) return block(kLost, position);
    open.push_back(i);
  }
  void block(Code code, uint64_t position) {
    if (blocked.code == kOk) blocked = {code, position};
    if (unknown.code == kOk && code != kReadOnly) unknown = {code, position};
  }
};

// Sorts all positions into claims. All positions above the highest one in use are open;
// decide(stretch, claims) sorts the others.
template <typename Decide>
int sort_claims(Object& object, const Header& header, const std::vector<uint64_t>& positions,
                const Decide& decide, Claims* claims) {
  const std::optional<uint64_t> taken = header.taken();
  auto fresh = positions.begin();
  if (taken) fresh = std::upper_bound(fresh, positions.end(), *taken);
  const std::vector<uint64_t> old(positions.begin(), fresh);
  Walk walk(object, header, old);
  while (!walk.done()) {
    Walk::Stretch stretch;
    ZLOG_TRY(walk.next(&stretch));
    ZLOG_TRY(decide(stretch, claims));
  }
  for (size_t i = old.size(); i < positions.size(); i++) {
    claims->open.push_back(static_cast<uint32_t>(i));
  }
  return 0;
}

// Returns why a stored record blocks a position. A damaged record may have the same entry.
Code blocking_code(const Stored& stored) {
  if (stored.record.kind == RecordKind::kLost) return kLost;
  return stored.record.unreadable() ? kUnreadable : kReadOnly;
}

// Sorts positions of one record into claims. An entry makes no claim if the same append with the
// same data is already stored.
int sort_covered(Layout* layout, const Header& header, const NewEntries& entries,
                 const Walk::Stretch& stretch, Claims* claims) {
  const std::vector<uint64_t>& positions = entries.positions;
  const Stored& stored = *stretch.stored;
  const Striping striping = header.striping();
  Comparison comparison(layout, header, stored, entries);
  std::vector<Comparison::Verdict> verdicts;
  for (uint32_t i = stretch.begin; i < stretch.end;) {
    uint32_t count = 1;  // at consecutive positions
    while (i + count < stretch.end && positions[i + count] == striping.after(positions[i], count)) {
      count++;
    }
    ZLOG_TRY(comparison.run(i, striping.index(stored.span, positions[i]), count, &verdicts));
    for (const Comparison::Verdict verdict : verdicts) {
      if (verdict == Comparison::Verdict::kOther) {
        claims->block(blocking_code(stored), positions[i]);
      } else if (verdict == Comparison::Verdict::kCompare && claims->same_id.code == kOk) {
        claims->same_id = {kSameId, positions[i]};
      }
      i++;
    }
  }
  return 0;
}

}  // namespace

Result<Fullness> write(Object& object, const WriteRequest& request) {
  const NewEntries entries(request, true, request.runs.positions());
  if (!entries.intact()) return Failure{-EINVAL};
  const std::vector<uint64_t>& positions = entries.positions;
  Header header;
  ZLOG_TRY(Header::load(object, &header));
  if (!header.owns(request.runs)) return Failure{-EINVAL};

  Layout layout(object, header);
  const auto decide = [&](const Walk::Stretch& stretch, Claims* claims) {
    if (stretch.stored != nullptr) return sort_covered(&layout, header, entries, stretch, claims);
    for (uint32_t i = stretch.begin; i < stretch.end; i++) {
      if (positions[i] < header.trim_point) {
        claims->block(kReadOnly, positions[i]);
      } else {
        claims->claim(i, positions[i], header.lost(positions[i]));
      }
    }
    return 0;
  };
  Claims claims;
  ZLOG_TRY(sort_claims(object, header, positions, decide, &claims));
  ZLOG_TRY(claims.same_id);
  if (claims.open.empty() && claims.blocked.code == kOk) return header.fullness();
  ZLOG_TRY(claims.unknown);
  ZLOG_TRY(header.admit(request.epoch));
  ZLOG_TRY(claims.blocked);
  ZLOG_TRY(header.take(positions[claims.open.back()]));
  ZLOG_TRY(store(object, &header, entries, claims.open));
  return header.fullness();
}

Result<Empty> fill(Object& object, Header& header, const FillRequest& request) {
  const std::vector<uint64_t> positions = request.runs.positions();
  const auto decide = [&](const Walk::Stretch& stretch, Claims* claims) {
    const Stored* const stored = stretch.stored;
    for (uint32_t i = stretch.begin; i < stretch.end; i++) {
      const uint64_t position = positions[i];
      if (position < header.trim_point) continue;
      if (stored == nullptr) {
        claims->claim(i, position, header.lost(position));
        continue;
      }
      const uint32_t index = header.striping().index(stored->span, position);
      const EntryState state = stored->record.state_of(index);
      if (state != EntryState::kFilled && state != EntryState::kTrimmed) {
        claims->block(blocking_code(*stored), position);
      }
    }
    return 0;
  };
  Claims claims;
  ZLOG_TRY(sort_claims(object, header, positions, decide, &claims));
  ZLOG_TRY(claims.blocked);
  if (claims.open.empty()) return Empty();
  std::vector<uint64_t> holes;
  holes.reserve(claims.open.size());
  for (const uint32_t i : claims.open) holes.push_back(positions[i]);
  ZLOG_TRY(header.take(holes.back()));
  Layout layout(object, header);
  for (const Span& span : spans_of(holes, header.striping())) {
    ZLOG_TRY(layout.put_fill(span, {request.timestamp, request.writer, 0}, request.reason));
    header.use(span);
  }
  return failure_of(header.save(object));
}

}  // namespace zlog::stripe
