#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace zlog {

// The identity of an append: its writer's id, as two integers, and its number.
struct AppendId {
  uint64_t writer_high = 0;
  uint64_t writer_low = 0;
  uint64_t number = 0;

  bool operator<(const AppendId& other) const {
    return std::tie(writer_high, writer_low, number) <
           std::tie(other.writer_high, other.writer_low, other.number);
  }
  bool same_writer(const AppendId& other) const {
    return writer_high == other.writer_high && writer_low == other.writer_low;
  }
};

// Finds appends that occur more than once in a log, in bounded memory.
//
// Writers number their appends, so the set stores intervals of numbers: one per 65,536 appends of a
// writer, and one more per gap. If that takes too much memory, the set keeps only a part of the
// appends, chosen by hash, and the caller repeats the search for the other parts. A duplicate may
// be found in more than one pass.
//
//   do { for (id of the log) if (ids.add(id)) …; } while (ids.next_part());
class AppendIds {
 public:
  explicit AppendIds(size_t intervals_max) : intervals_max_(intervals_max) {}

  // Adds an append, and returns true if it was added before. Ignores appends that are not in the
  // current part.
  bool add(const AppendId& id);

  // Clears the set for a pass over the next part. Returns false if there is none.
  bool next_part();

 private:
  // The appends whose hash has these low bits.
  struct Part {
    uint64_t bits = 0;
    uint32_t count = 0;  // number of bits
  };
  using Intervals = std::map<AppendId, uint64_t>;  // the first → the last number

  bool belongs(const AppendId& id) const;
  void split();
  Intervals::iterator join_next(Intervals::iterator at);

  const size_t intervals_max_;
  Intervals last_of_;
  Intervals::iterator recent_ = last_of_.end();
  Part part_;
  std::vector<Part> left_;
};

}  // namespace zlog
