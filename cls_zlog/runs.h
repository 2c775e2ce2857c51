#pragma once

#include <cstdint>
#include <vector>

#include "wire.h"

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
  static bool of(uint32_t stride, const std::vector<uint64_t>& positions, Runs* out);

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
  bool add(uint64_t first, uint32_t length);

  uint32_t stride_ = 1;
  uint32_t count_ = 0;
  std::vector<Run> runs_;
};

}  // namespace zlog
