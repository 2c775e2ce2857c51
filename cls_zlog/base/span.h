#pragma once

#include <cstdint>

namespace zlog {

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
