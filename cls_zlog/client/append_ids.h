#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace zlog {

// The identity of an append: its writer's id, as two numbers, and the writer's count.
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

// The appends that were seen, exactly, in bounded memory: tells which comes up a second time.
//
// A writer counts its appends, so what is kept are intervals of numbers: a log read in order takes
// one for each writer and 65,536 appends, and one for each gap in between. When they grow too many
// the set keeps to a part of all appends, chosen by hash, and leaves the others to further passes:
//
//   do { for (id of the log) if (ids.add(id)) …; } while (ids.next_part());
//
// No append that comes up again is missed; one may be told of in two passes.
class AppendIds {
 public:
  explicit AppendIds(size_t intervals_max) : intervals_max_(intervals_max) {}

  // Notes an append. True: it was noted before. One of another part is passed over.
  bool add(const AppendId& id);

  // Forgets all, and goes on to the appends that were left out. False when there are none.
  bool next_part();

 private:
  // The appends whose hash has these low bits.
  struct Part {
    uint64_t bits = 0;
    uint32_t count = 0;  // how many bits
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
