#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/base/striping.h"
#include "cls_zlog/wire/stripe_messages.h"

namespace zlog {

// The positions of an object that may be unwritten, as its header lists them. If any other position
// has no record and is not below the trim point, its record was lost.
struct Holes {
  uint64_t accounted = 0;         // positions from here on may be unwritten too
  std::vector<SpanMessage> runs;  // ascending, all below `accounted`

  bool valid(const Striping& striping, uint32_t residue) const {
    uint64_t free = 0;
    for (const SpanMessage& hole : runs) {
      if (hole.first < free || hole.last < hole.first || hole.last >= accounted) return false;
      if (striping.residue(hole.first) != residue || striping.residue(hole.last) != residue) {
        return false;
      }
      free = hole.last + 1;
    }
    return true;
  }

  // Returns whether a position may be unwritten.
  bool allow(uint64_t position) const {
    if (position >= accounted) return true;
    return std::any_of(runs.begin(), runs.end(),
                       [&](const SpanMessage& hole) { return hole.covers(position); });
  }

  // Returns the first position at or above `position` that may be unwritten. If the result is
  // `accounted` or higher, it may belong to another object.
  uint64_t next(uint64_t position) const {
    for (const SpanMessage& hole : runs) {
      if (hole.last >= position) return std::max(hole.first, position);
    }
    return std::max(accounted, position);
  }

  // Marks positions as used. If they leave out positions at or above `floor`, those become a hole.
  void use(const Span& span, const Striping& striping, uint64_t floor) {
    const uint64_t from =
        striping.first_at(std::max(accounted, floor), striping.residue(span.first));
    if (from < span.first) runs.push_back({{from, striping.before(span.first, 1)}});
    accounted = std::max(accounted, span.last + 1);
    take_out(span, striping);
    while (runs.size() > limits::holes_max) join_nearest();
  }

  void forget_below(uint64_t point) {
    const auto below = [&](const SpanMessage& hole) { return hole.last < point; };
    runs.erase(runs.begin(), std::find_if_not(runs.begin(), runs.end(), below));
  }

 private:
  void take_out(const Span& span, const Striping& striping) {
    if (runs.empty() || runs.back().last < span.first) return;
    std::vector<SpanMessage> left;
    for (const SpanMessage& hole : runs) {
      if (hole.last < span.first || hole.first > span.last) {
        left.push_back(hole);
        continue;
      }
      if (hole.first < span.first) left.push_back({{hole.first, striping.before(span.first, 1)}});
      if (hole.last > span.last) left.push_back({{striping.next(span.last), hole.last}});
    }
    runs = std::move(left);
  }

  // Joins the two nearest runs; the positions between them then count as possibly unwritten.
  void join_nearest() {
    size_t nearest = 1;
    for (size_t i = 2; i < runs.size(); i++) {
      if (runs[i].first - runs[i - 1].last < runs[nearest].first - runs[nearest - 1].last) {
        nearest = i;
      }
    }
    runs[nearest - 1].last = runs[nearest].last;
    runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(nearest));
  }
};

}  // namespace zlog
