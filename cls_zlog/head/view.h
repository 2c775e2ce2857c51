#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/wire/wire.h"

namespace zlog {

// A range of positions [start, end) spread over `width` stripe objects.
struct Stripe {
  uint64_t id = 0;     // the epoch of the view that made it
  uint64_t start = 0;
  uint64_t end = 0;    // above start; limits::end_open for a view's last stripe
  uint32_t width = 0;  // 1 to width_max

  bool operator==(const Stripe& other) const {
    return id == other.id && start == other.start && end == other.end && width == other.width;
  }

  // Whether there can be such a stripe, taken by itself.
  bool valid() const;
};

// The fields of a stripe, one after the other.
void encode_stripe(const Stripe& stripe, wire::Writer* writer);
Stripe decode_stripe(wire::Reader* reader);

// A count and as many stripes. Decoding is false for more than `count_max`, or than there are.
void encode_stripes(const std::vector<Stripe>& stripes, wire::Writer* writer);
bool decode_stripes(wire::Reader* reader, uint32_t count_max, std::vector<Stripe>* out);

enum class LogState : uint8_t { kLive = 0, kRemoved = 1 };

// The log's layout in one epoch (CORFU: projection): the newest stripes. Every position at or above
// the trim point lies in exactly one stripe, one of these or an archived one (stripe_index.h).
struct View {
  uint64_t epoch = 0;
  uint64_t log_id = 0;
  LogState state = LogState::kLive;
  std::string sequencer;    // address of the sequencer that grants in this epoch; empty: none
  std::vector<Stripe> stripes;
  std::map<std::string, std::string> options;

  std::string encode() const;

  // Answers 0, or -EINVAL for bytes that are no view or one that breaks a rule of its own: epoch
  // at least 1, stripes contiguous with only the last one open, widths, lengths and the number of
  // stripes within the limits.
  static int decode(std::string_view bytes, View* out);
};

// What a view makes of the one before it.
struct Succession {
  std::vector<Stripe> left;      // stripes that are in the view no more, each with its end
  const Stripe* made = nullptr;  // the view's last stripe, if it is new
};

// Whether `next` may take over from `base` (nullptr: it is the log's first view), and what it makes
// of it. It has base's stripes without some of the first ones; or these with an end for the last
// one, and a new stripe behind it that carries the new epoch. A stripe that ends where it starts
// holds nothing, and is left out. The first view is one new stripe from position 0 on. A removed
// log stays removed.
bool may_follow(const View& next, const View* base, Succession* out);

}  // namespace zlog
