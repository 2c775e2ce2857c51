#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cls_zlog/wire/frame.h"

namespace zlog {

// The positions [start, end), which are spread over `width` stripe objects in units of
// `stripe_unit` positions. The head object stores archived stripes in the same form as views do.
struct Stripe {
  uint64_t id = 0;  // the epoch of the view that created it
  uint64_t start = 0;
  uint64_t end = 0;  // above start; limits::end_open for a view's last stripe
  uint32_t width = 0;
  uint32_t stripe_unit = 1;  // a power of two
  wire::Further further;

  ZLOG_FIELDS(v) {
    v("id", id, wire::at_least(1));
    v("start", start, wire::position());
    v("end", end);
    v("width", width, wire::between(1, limits::width_max));
    v("stripe_unit", stripe_unit, wire::unit(2));
  }
  bool valid() const { return end > start && is_unit(stripe_unit); }

  bool operator==(const Stripe& other) const {
    return id == other.id && start == other.start && end == other.end && width == other.width &&
           stripe_unit == other.stripe_unit;
  }
};

enum class LogState : uint8_t { kLive = 0, kRemoved = 1 };

// The only client that may append to an exclusive log. It grants the positions itself.
struct ExclusiveWriter {
  std::string id;      // the id of the writer in all of its appends
  std::string name;    // for people
  uint64_t since = 0;  // microseconds since 1970, by its own clock
  wire::Further further;

  ZLOG_FIELDS(v) {
    v("id", id, wire::raw(limits::writer_bytes));
    v("name", name, wire::at_most(limits::writer_name_bytes_max));
    v("since", since);
  }
};

// Which key authenticates the entries' data. Only clients make and check MACs (client/mac.h).
struct EntryMac {
  uint8_t algorithm = 0;  // 1: HMAC-SHA256, 16 bytes of it
  std::string key_id;     // derived from the key, and does not reveal it
  wire::Further further;

  ZLOG_FIELDS(v) {
    v("algorithm", algorithm);
    v("key_id", key_id, wire::raw(limits::mac_key_id_bytes));
  }
};

// The log's layout in one epoch (a projection in CORFU): its newest stripes, which are contiguous.
// Only the last one is open. Each position at or above the trim point is in exactly one stripe,
// either of the view or of the archived stripes (head/stripe_index.h).
struct View {
  uint64_t epoch = 0;
  uint64_t log_id = 0;
  LogState state = LogState::kLive;
  std::string sequencer;  // address of the sequencer that grants in this epoch; empty: none
  std::vector<Stripe> stripes;
  std::map<std::string, std::string> options;
  bool read_only = false;               // no client appends
  std::vector<ExclusiveWriter> writer;  // at most one; none: any client may append
  std::vector<EntryMac> mac;            // at most one; none: entries have no MACs
  bool offloads = false;                // ended stripes may be in files (head/offloads.h)
  bool ordered = false;                 // the live stripe's only object assigns positions
  wire::Further further;

  ZLOG_FIELDS(v) {
    v("epoch", epoch, wire::at_least(1));
    v("log_id", log_id);
    v("state", state, wire::at_most(LogState::kRemoved));
    v("sequencer", sequencer, wire::address());
    v("stripes", stripes, wire::between(1, limits::view_stripes_max));
    v("options", options);
    v("read_only", read_only, wire::any().since(2).heed());
    v("writer", writer, wire::at_most(1).since(2).heed());
    v("mac", mac, wire::at_most(1).since(3).heed());
    v("offloads", offloads, wire::any().since(4).heed());
    v("ordered", ordered, wire::any().since(5).heed());
  }
  bool valid() const;

  // Whether entries of another log are copied to it, at the positions that they have there.
  bool mirror() const { return options.count("mirror_of") != 0; }
};

inline bool View::valid() const {
  if (stripes.empty() || stripes.back().end != limits::end_open) return false;
  const bool one_object = stripes.back().width == 1 && sequencer.empty();
  if (ordered && !(one_object && writer.empty() && mac.empty())) return false;
  const Stripe* previous = nullptr;
  for (const Stripe& stripe : stripes) {
    if (stripe.id > epoch) return false;
    if (previous != nullptr && (stripe.start != previous->end || stripe.id <= previous->id)) {
      return false;
    }
    previous = &stripe;
  }
  for (const auto& [key, value] : options) {
    if (key.empty() || key.size() > limits::option_key_bytes_max) return false;
    if (value.size() > limits::option_value_bytes_max) return false;
  }
  return true;
}

}  // namespace zlog
