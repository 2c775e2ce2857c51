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

// The only client that appends to an exclusive log. It hands out the positions itself.
struct ExclusiveWriter {
  std::string id;      // that its appends carry, and no others
  std::string name;    // for people
  uint64_t since = 0;  // microseconds since 1970, by its own clock
  wire::Further further;

  template <typename V>
  void each(V& v) {
    v("id", id, wire::raw(limits::writer_bytes));
    v("name", name, wire::at_most(limits::writer_name_bytes_max));
    v("since", since);
  }
};

// With which key the entries' data is authenticated: each is stored with a MAC behind it. Clients make
// and check it (client/mac.h), and no class does.
struct EntryMac {
  uint8_t algorithm = 0;  // 1: HMAC-SHA256, 16 bytes of it
  std::string key_id;     // made from the key, and tells nothing of it
  wire::Further further;

  template <typename V>
  void each(V& v) {
    v("algorithm", algorithm);
    v("key_id", key_id, wire::raw(limits::mac_key_id_bytes));
  }
};

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
  bool read_only = false;               // no client appends
  std::vector<ExclusiveWriter> writer;  // at most one; none: any client appends
  std::vector<EntryMac> mac;            // at most one; none: entries have no MACs
  wire::Further further;

  template <typename V>
  void each(V& v) {
    v("epoch", epoch, wire::at_least(1));
    v("log_id", log_id);
    v("state", state, wire::at_most(LogState::kRemoved));
    v("sequencer", sequencer, wire::address());
    v("stripes", stripes, wire::between(1, limits::view_stripes_max));
    v("options", options);
    v("read_only", read_only, wire::any().since(2).heed());
    v("writer", writer, wire::at_most(1).since(2).heed());
    v("mac", mac, wire::at_most(1).since(3).heed());
  }
  bool valid() const;

  // Whether it takes copies of entries, at positions that are given and not handed out.
  bool mirror() const { return options.count("mirror_of") != 0; }
};

}  // namespace zlog
