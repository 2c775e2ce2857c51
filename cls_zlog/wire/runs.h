#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cls_zlog/base/striping.h"
#include "cls_zlog/wire/wire.h"

namespace zlog {

// packed() converts a striping to one number, with the stride in the low 16 bits and the shift in
// the higher bits. unpacked() converts it back.
uint32_t packed(const Striping& striping);
Striping unpacked(uint32_t striping);

// `length` consecutive positions of an object, beginning with `first`.
struct Run {
  uint64_t first = 0;
  uint32_t length = 0;  // positions, at least 1
};

// A set of up to entries_max positions of one stripe object. They are stored as ascending runs that
// neither overlap nor touch. The striping is valid, and no position is above position_max.
class Runs {
 public:
  // Converts positions to runs. Returns false if the positions are not in ascending order, belong
  // to more than one object, or exceed the limit.
  static bool of(const Striping& striping, const std::vector<uint64_t>& positions, Runs* out) {
    return of(striping, positions.size(), [&](size_t i) { return positions[i]; }, out);
  }

  // Makes one run of `count` positions of an object, beginning with `first`.
  static bool row(const Striping& striping, uint64_t first, uint32_t count, Runs* out) {
    Runs runs;
    if (!runs.begin(striping) || !runs.add(first, count)) return false;
    *out = std::move(runs);
    return true;
  }

  // Like of(), for the positions position_at(0), …, position_at(count - 1).
  template <typename PositionAt>
  static bool of(const Striping& striping, size_t count, PositionAt&& position_at, Runs* out) {
    Runs runs;
    if (count == 0 || !runs.begin(striping)) return false;
    for (size_t i = 0; i < count; i++) {
      if (!runs.add(position_at(i), 1)) return false;
    }
    *out = std::move(runs);
    return true;
  }

  // wire := striping u32, count u32, [first u64, length u32] × count; at least one run.
  static bool decode(wire::Reader* reader, Runs* out);
  void encode(wire::Writer* writer) const;

  const Striping& striping() const { return striping_; }
  uint32_t residue() const { return striping_.residue(first()); }
  const std::vector<Run>& runs() const { return runs_; }
  uint32_t count() const { return count_; }  // positions in all runs
  uint64_t first() const { return runs_.front().first; }
  uint64_t last() const { return last_of(runs_.back()); }
  uint64_t last_of(const Run& run) const { return striping_.after(run.first, run.length - 1); }

  // Returns every position in ascending order.
  std::vector<uint64_t> positions() const;

 private:
  bool begin(const Striping& striping);
  bool add(uint64_t first, uint32_t length);

  Striping striping_;
  uint32_t count_ = 0;
  std::vector<Run> runs_;
};

}  // namespace zlog
