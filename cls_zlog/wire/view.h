#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cls_zlog/wire/frame.h"

namespace zlog {

// A range of positions [start, end) spread over `width` stripe objects, `unit` positions in a row
// in each in turn. Also stored, when it is archived.
struct Stripe {
  uint64_t id = 0;  // the epoch of the view that made it
  uint64_t start = 0;
  uint64_t end = 0;  // above start; limits::end_open for a view's last stripe
  uint32_t width = 0;
  uint32_t unit = 1;  // a power of two
  wire::Further further;

  template <typename V>
  void each(V& v) {
    v("id", id, wire::at_least(1));
    v("start", start, wire::position());
    v("end", end);
    v("width", width, wire::between(1, limits::width_max));
    v("unit", unit, wire::unit(2));
  }
  bool valid() const { return end > start && is_unit(unit); }

  bool operator==(const Stripe& other) const {
    return id == other.id && start == other.start && end == other.end && width == other.width &&
           unit == other.unit;
  }
};

enum class LogState : uint8_t { kLive = 0, kRemoved = 1 };

// The log's layout in one epoch (CORFU: projection): the newest stripes, contiguous, of which only
// the last one is open. Every position at or above the trim point lies in exactly one stripe, one
// of these or an archived one (head/stripe_index.h).
struct View {
  uint64_t epoch = 0;
  uint64_t log_id = 0;
  LogState state = LogState::kLive;
  std::string sequencer;  // address of the sequencer that grants in this epoch; empty: none
  std::vector<Stripe> stripes;
  std::map<std::string, std::string> options;
  wire::Further further;

  template <typename V>
  void each(V& v) {
    v("epoch", epoch, wire::at_least(1));
    v("log_id", log_id);
    v("state", state, wire::at_most(LogState::kRemoved));
    v("sequencer", sequencer, wire::address());
    v("stripes", stripes, wire::between(1, limits::view_stripes_max));
    v("options", options);
  }
  bool valid() const;

  // Whether it takes copies of entries, at positions that are given and not handed out.
  bool mirror() const { return options.count("mirror_of") != 0; }
};

}  // namespace zlog
