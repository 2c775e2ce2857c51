#pragma once

#include <cstdint>
#include <vector>

#include "cls_zlog/base/limits.h"

namespace zlog {

// Returns one past the last of `count` positions from `start` on, limited to valid positions.
inline uint64_t end_of(uint64_t start, uint64_t count) {
  constexpr uint64_t end_max = limits::position_max + 1;
  return count > end_max - start ? end_max : start + count;
}

// Consecutive positions of one object, including `first` and `last`.
struct Span {
  uint64_t first = 0;
  uint64_t last = 0;  // >= first

  bool covers(uint64_t position) const { return first <= position && position <= last; }
};

// How a stripe's positions are distributed over its `stride` objects: each object in turn gets a
// unit of 2^shift consecutive positions. residue(p) is the number of the object with position p.
struct Striping {
  uint32_t stride = 1;  // objects: the stripe's width
  uint32_t shift = 0;   // the stripe unit's logarithm

  uint64_t unit() const { return uint64_t{1} << shift; }
  uint64_t turns() const { return uint64_t{stride} << shift; }  // positions of a turn
  uint32_t residue(uint64_t position) const {
    return static_cast<uint32_t>((position >> shift) % stride);
  }

  // Returns the first position of each object that has positions in [first, end).
  std::vector<uint64_t> firsts(uint64_t first, uint64_t end) const {
    std::vector<uint64_t> found;
    for (uint64_t p = first; p < end && found.size() < stride; p = ((p >> shift) + 1) << shift) {
      found.push_back(p);
    }
    return found;
  }

  // Returns how many positions below `position` are in the same object.
  uint64_t rank(uint64_t position) const {
    return ((position >> shift) / stride << shift) + (position & mask());
  }

  // Returns the next position in the same object.
  uint64_t next(uint64_t position) const {
    position++;
    return (position & mask()) != 0 ? position : position + others();
  }

  // after() returns the position that comes `count` positions later in the same object, and
  // before() the one that comes `count` positions earlier.
  uint64_t after(uint64_t position, uint64_t count) const {
    const uint64_t from = (position & mask()) + count;
    return (position & ~mask()) + (from >> shift) * turns() + (from & mask());
  }
  uint64_t before(uint64_t position, uint64_t count) const {
    const uint64_t back = mask() - (position & mask()) + count;
    return (position | mask()) - (back >> shift) * turns() - (back & mask());
  }

  // Returns the first position at or above `position` in the object with this index.
  uint64_t first_at(uint64_t position, uint32_t index) const {
    const uint64_t turn = (position >> shift) / stride;
    const uint64_t begin = (turn * stride + index) << shift;
    if (position <= begin) return begin;
    return position - begin < unit() ? position : begin + turns();
  }

  // Returns how many positions of [first, end) are in the object of `first`.
  uint64_t count(uint64_t first, uint64_t end) const {
    return first >= end ? 0 : rank(first_at(end, residue(first))) - rank(first);
  }

  // Returns the number of positions in a span.
  uint64_t length(const Span& span) const { return rank(span.last) - rank(span.first) + 1; }

  // Returns the index of a position in a span, counted from 0.
  uint32_t index(const Span& span, uint64_t position) const {
    return static_cast<uint32_t>(rank(position) - rank(span.first));
  }

  bool operator==(const Striping& other) const {
    return stride == other.stride && shift == other.shift;
  }

 private:
  uint64_t mask() const { return unit() - 1; }
  uint64_t others() const { return uint64_t{stride - 1} << shift; }  // positions of other objects
};

constexpr uint32_t unit_max = 1u << limits::unit_shift_max;

inline bool is_unit(uint32_t stripe_unit) {
  return stripe_unit != 0 && (stripe_unit & (stripe_unit - 1)) == 0 && stripe_unit <= unit_max;
}

// `stripe_unit` must be valid.
inline Striping striping_of(uint32_t stride, uint32_t stripe_unit) {
  return {stride, static_cast<uint32_t>(__builtin_ctz(stripe_unit))};
}

}  // namespace zlog
