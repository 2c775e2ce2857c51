#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cls_zlog/wire/wire.h"

namespace zlog {

// The positions first, first + stride, … (`length` of them); the stride is that of the Runs it is
// in.
struct Run {
  uint64_t first = 0;
  uint32_t length = 0;  // positions, at least 1
};

// A set of positions of one stripe object, ascending. Between calls it always holds: 1 <= stride
// <= width_max; runs are ascending and neither overlap nor touch (touching ones are merged); every
// position is congruent to the others modulo the stride and at most position_max; count() <=
// entries_max.
class Runs {
 public:
  // Makes runs of ascending positions. False when they do not ascend, are not congruent, or are
  // too many.
  static bool of(uint32_t stride, const std::vector<uint64_t>& positions, Runs* out) {
    return of(stride, positions.size(), [&](size_t i) { return positions[i]; }, out);
  }

  // The same for the positions position_at(0), … position_at(count - 1).
  template <typename PositionAt>
  static bool of(uint32_t stride, size_t count, PositionAt&& position_at, Runs* out) {
    Runs runs;
    if (count == 0 || !runs.begin(stride)) return false;
    for (size_t i = 0; i < count; i++) {
      if (!runs.add(position_at(i), 1)) return false;
    }
    *out = std::move(runs);
    return true;
  }

  // wire := stride u32, count u32, [first u64, length u32] × count; at least one run.
  static bool decode(wire::Reader* reader, Runs* out);
  void encode(wire::Writer* writer) const;

  uint32_t stride() const { return stride_; }
  uint32_t residue() const { return static_cast<uint32_t>(first() % stride_); }
  const std::vector<Run>& runs() const { return runs_; }
  uint32_t count() const { return count_; }  // positions in all runs
  uint64_t first() const { return runs_.front().first; }
  uint64_t last() const { return last_of(runs_.back()); }
  uint64_t last_of(const Run& run) const { return run.first + uint64_t{run.length - 1} * stride_; }

  // Every position, ascending.
  std::vector<uint64_t> positions() const;

 private:
  bool begin(uint32_t stride);
  bool add(uint64_t first, uint32_t length);

  uint32_t stride_ = 1;
  uint32_t count_ = 0;
  std::vector<Run> runs_;
};

}  // namespace zlog
