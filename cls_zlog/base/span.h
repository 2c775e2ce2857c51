#pragma once

#include <cstdint>

#include "cls_zlog/base/limits.h"

namespace zlog {

// One past `count` positions from `start` on, limited to valid positions.
inline uint64_t end_of(uint64_t start, uint64_t count) {
  constexpr uint64_t end_max = limits::position_max + 1;
  return count > end_max - start ? end_max : start + count;
}

// Consecutive positions of one object, from the first to the last (striping.h).
struct Span {
  uint64_t first = 0;
  uint64_t last = 0;  // >= first

  bool covers(uint64_t position) const { return first <= position && position <= last; }
};

}  // namespace zlog
