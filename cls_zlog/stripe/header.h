#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "cls_zlog/base/span.h"
#include "cls_zlog/stripe/holes.h"
#include "cls_zlog/wire/envelope.h"
#include "cls_zlog/wire/stripe_messages.h"

namespace zlog {

// What a stripe object knows of itself; one attribute, read and written whole.
// docs/formats/header.md.
struct Header {
  static constexpr const char* kAttribute = "zlog.header";

  uint64_t epoch = 0;               // the last one sealed
  uint32_t stride = 1;              // objects of its stripe
  uint32_t residue = 0;             // which of them it is
  std::optional<uint64_t> highest;  // the highest position written, filled or trimmed here
  uint64_t trim_point = 0;          // every position below it is trimmed
  uint64_t entries = 0;             // written and not trimmed
  uint64_t bytes = 0;               // data of those
  uint64_t records = 0;             // stored records
  uint64_t stream_end = 0;          // where the next batch goes in the bytestream; bytes
  uint32_t value_bytes = 0;         // no record's value is larger: bounds what a listing fetches
  Holes holes;                      // since version 2: one of version 1 knows nothing
  std::optional<uint64_t> start;    // where its stripe begins, or below; none: it was not told
  uint32_t unit = 1;                // positions in a row that an object has: a power of two
  uint64_t block_data = 0;          // of `bytes`, what is in blocks
  uint64_t block_bytes = 0;         // what these blocks take, compressed
  bool tagged = false;              // entries with tags have been written to it
  uint64_t indexed = 0;        // chunks of the index of tags are about positions below this one
  uint32_t loose_tags = 0;     // tags of entries from there on
  uint32_t loose_records = 0;  // records from there on
  wire::Further further;

  template <typename V>
  void each(V& v) {
    v("epoch", epoch, at_least(1));
    v("stride", stride, between(1, limits::width_max));
    v("residue", residue);
    v("highest", highest, wire::position());
    v("trim_point", trim_point, wire::position_or_end());
    v("entries", entries);
    v("bytes", bytes);
    v("records", records);
    v("stream_end", stream_end, at_most(limits::stream_bytes_max));
    v("value_bytes", value_bytes);
    v("accounted", holes.accounted, wire::position_or_end().since(2));
    v("holes", holes.runs, at_most(limits::holes_max).since(2));
    v("start", start, wire::position().since(3));
    v("unit", unit, wire::unit(4));
    v("block_data", block_data, wire::any().since(5));
    v("block_bytes", block_bytes, wire::any().since(5));
    v("tagged", tagged, wire::any().since(6).heed());
    v("indexed", indexed, wire::position_or_end().since(6));
    v("loose_tags", loose_tags, wire::any().since(6));
    v("loose_records", loose_records, wire::any().since(6));
  }
  bool valid() const {
    if (residue >= stride || !is_unit(unit)) return false;
    if (highest && spacing().residue(*highest) != residue) return false;
    return holes.valid(spacing(), residue);
  }
  Spacing spacing() const { return spacing_of(stride, unit); }

  // Whether nothing of what only grows is less than in another one of the object.
  bool follows(const Header& other) const {
    return epoch >= other.epoch && highest >= other.highest && trim_point >= other.trim_point &&
           stream_end >= other.stream_end && value_bytes >= other.value_bytes &&
           holes.accounted >= other.holes.accounted && tagged >= other.tagged &&
           indexed >= other.indexed;
  }

  // -ENOENT: there is no such object, or it was never sealed.
  static Failure load(Object& object, Header* out) {
    return load_attribute(object, kAttribute, out);
  }
  int save(Object& object) const { return save_attribute(object, kAttribute, *this); }

  // The highest position that can never be written any more, if any: the highest one used, or the
  // last one below the trim point.
  std::optional<uint64_t> taken() const {
    const uint64_t from = first_at(trim_point);
    if (spacing().place(from) == 0) return highest;
    const uint64_t below = spacing().before(from, 1);
    return std::max(highest.value_or(below), below);
  }

  Fullness fullness() const {
    return {static_cast<uint32_t>(std::min<uint64_t>(records, UINT32_MAX)),
            std::max(stream_end, stored_bytes())};
  }

  // What the data of its entries takes.
  uint64_t stored_bytes() const { return bytes - std::min(bytes, block_data) + block_bytes; }

  // Whether the request is about positions of this object.
  bool owns(const Runs& runs) const {
    return runs.spacing() == spacing() && runs.residue() == residue;
  }

  // One past the last position that it takes; where nothing is known of its stripe, any.
  uint64_t end() const {
    return end_of(start.value_or(limits::position_max), limits::object_positions_max * stride);
  }

  // The least of its positions from one on.
  uint64_t first_at(uint64_t position) const { return spacing().first_at(position, residue); }

  // Whether it takes a position: 0, or kBeyondStripe.
  Failure take(uint64_t position) const {
    if (position < end()) return {};
    return {kBeyondStripe, end()};
  }

  // Whether a request of this epoch may still act on the object: 0, or kStaleEpoch.
  Failure admit(uint64_t request_epoch) const {
    if (request_epoch >= epoch) return {};
    return {kStaleEpoch, epoch};
  }

  // Notes that positions are used now.
  void use(const Span& span) {
    highest = std::max(highest.value_or(span.last), span.last);
    holes.use(span, spacing(), trim_point);
  }

  // Whether the object has lost what it stored at a position that it has no record for.
  bool lost(uint64_t position) const { return position >= trim_point && !holes.allow(position); }

  // Whether one of its positions in [begin, end) has lost its record, where there is none in between.
  bool lost(uint64_t begin, uint64_t end) const {
    uint64_t position = first_at(begin);
    for (const Hole& hole : holes.runs) {
      if (hole.covers(position)) position = spacing().next(hole.last);
    }
    return position < std::min(end, holes.accounted);
  }

  // The least of its positions from one on that may be unwritten, if there is one.
  std::optional<uint64_t> unwritten(uint64_t position) const {
    const uint64_t found = first_at(holes.next(first_at(std::max(position, trim_point))));
    return found <= limits::position_max ? std::optional(found) : std::nullopt;
  }

  // Notes that written entries are gone. Never below zero: the counters are for people, and a
  // damaged record's share is not known.
  void forget(uint64_t gone_entries, uint64_t gone_bytes) {
    entries -= std::min(entries, gone_entries);
    bytes -= std::min(bytes, gone_bytes);
  }
};

}  // namespace zlog
