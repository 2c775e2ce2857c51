#pragma once

#include <cstdint>

#include "cls_zlog/base/limits.h"

namespace zlog {

// One past `count` positions from `start` on, as far as there are positions.
inline uint64_t end_of(uint64_t start, uint64_t count) {
  constexpr uint64_t end_max = limits::position_max + 1;
  return count > end_max - start ? end_max : start + count;
}

// Positions of one object in a row: first, first + stride, … last.
struct Span {
  uint64_t first = 0;
  uint64_t last = 0;  // >= first, a whole number of strides away

  uint64_t length(uint32_t stride) const { return (last - first) / stride + 1; }
  bool covers(uint64_t position) const { return first <= position && position <= last; }

  // Which of its positions `position` is, counted from 0.
  uint32_t index(uint64_t position, uint32_t stride) const {
    return static_cast<uint32_t>((position - first) / stride);
  }
};

}  // namespace zlog
