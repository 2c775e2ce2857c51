#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zlog {

// A range of positions [start, end) spread over `width` stripe objects.
struct Stripe {
  uint64_t id = 0;     // the epoch of the view that made it
  uint64_t start = 0;
  uint64_t end = 0;    // limits::end_open for a view's last stripe; == start: it holds nothing
  uint32_t width = 0;  // 1 to width_max

  bool same_place(const Stripe& other) const {
    return id == other.id && start == other.start && width == other.width;
  }
};

enum class LogState : uint8_t { kLive = 0, kRemoved = 1 };

// The log's layout in one epoch (CORFU: projection). Every position at or above the trim point
// lies in exactly one stripe.
struct View {
  uint64_t epoch = 0;
  uint64_t log_id = 0;
  LogState state = LogState::kLive;
  std::string sequencer;    // address of the sequencer that grants in this epoch; empty: none
  std::vector<Stripe> stripes;
  std::map<std::string, std::string> options;

  std::string encode() const;

  // Answers 0, or -EINVAL for bytes that are no view or one that breaks a rule of its own: epoch
  // at least 1, stripes contiguous with only the last one open, widths and lengths within the
  // limits.
  static int decode(std::string_view bytes, View* out);
};

// Whether `next` may take over from `base` (nullptr: it is the log's first view): it reaches down
// to the log's trim point; every stripe of base that is not wholly below that point is still there
// and only base's last may have got an end; new stripes carry the new epoch; a removed log stays
// removed.
bool may_follow(const View& next, const View* base, uint64_t trim_point);

}  // namespace zlog
