#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "cls_zlog/base/striping.h"
#include "cls_zlog/stripe/holes.h"
#include "cls_zlog/wire/envelope.h"
#include "cls_zlog/wire/stripe_messages.h"

namespace zlog {

// The attribute of a stripe object (docs/formats/header.md).
struct Header {
  static constexpr const char* kAttribute = "zlog.header";

  uint64_t epoch = 0;               // the last one sealed
  uint32_t stride = 1;              // objects of the stripe
  uint32_t residue = 0;             // the object's index among them
  std::optional<uint64_t> highest;  // the highest position written, filled or trimmed by `trim`
  uint64_t trim_point = 0;          // every position below it is trimmed
  uint64_t entries = 0;             // written and not trimmed
  uint64_t bytes = 0;               // their data
  uint64_t records = 0;             // stored records
  uint64_t stream_end = 0;          // length of the bytestream; bytes
  uint32_t value_bytes = 0;         // upper bound of a record's value; limits listings
  Holes holes;                      // since version 2
  std::optional<uint64_t> start;    // the stripe's first position, or below; none: not known
  uint32_t stripe_unit = 1;         // consecutive positions in one object: a power of two
  uint64_t block_data = 0;          // the part of `bytes` that is in blocks
  uint64_t block_bytes = 0;         // the same, compressed
  bool tagged = false;              // entries with tags have been written
  uint64_t indexed = 0;             // the index of tags covers positions below this one
  uint32_t unindexed_tags = 0;      // tags of entries from there on
  uint32_t unindexed_records = 0;   // records from there on
  bool frozen = false;              // positions are no longer trimmed one by one
  std::string appenders;            // recent writers (appenders.h), the latest one last
  uint64_t appenders_floor = 0;     // the appends of all other writers are below it
  wire::Further further;

  ZLOG_FIELDS(v) {
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
    v("stripe_unit", stripe_unit, wire::unit(4));
    v("block_data", block_data, wire::any().since(5));
    v("block_bytes", block_bytes, wire::any().since(5));
    v("tagged", tagged, wire::any().since(6).heed());
    v("indexed", indexed, wire::position_or_end().since(6));
    v("unindexed_tags", unindexed_tags, wire::any().since(6));
    v("unindexed_records", unindexed_records, wire::any().since(6));
    v("frozen", frozen, wire::any().since(7).heed());
    v("appenders", appenders,
      at_most(limits::appenders_max * limits::appender_bytes).since(8).heed());
    v("appenders_floor", appenders_floor, wire::position_or_end().since(8).heed());
  }
  bool valid() const {
    if (residue >= stride || !is_unit(stripe_unit)) return false;
    if (highest && striping().residue(*highest) != residue) return false;
    if (appenders.size() % limits::appender_bytes != 0) return false;
    return holes.valid(striping(), residue);
  }
  Striping striping() const { return striping_of(stride, stripe_unit); }

  // Returns whether this can be a later state of `other`, the header of the same object. The values
  // compared here never decrease.
  bool follows(const Header& other) const {
    return epoch >= other.epoch && highest >= other.highest && trim_point >= other.trim_point &&
           stream_end >= other.stream_end && value_bytes >= other.value_bytes &&
           holes.accounted >= other.holes.accounted && tagged >= other.tagged &&
           indexed >= other.indexed && frozen >= other.frozen &&
           appenders_floor >= other.appenders_floor;
  }

  // Returns -ENOENT if the object does not exist or was never sealed.
  static Failure load(Object& object, Header* out) {
    return load_attribute(object, kAttribute, out);
  }
  int save(Object& object) const { return save_attribute(object, kAttribute, *this); }

  // Returns the highest position that is in use or below the trim point.
  std::optional<uint64_t> taken() const {
    const uint64_t from = first_at(trim_point);
    if (striping().rank(from) == 0) return highest;
    const uint64_t below = striping().before(from, 1);
    return std::max(highest.value_or(below), below);
  }

  Fullness fullness() const {
    return {static_cast<uint32_t>(std::min<uint64_t>(records, UINT32_MAX)),
            std::max(stream_end, stored_bytes())};
  }

  // Returns the size of the entries' data as it is stored.
  uint64_t stored_bytes() const { return bytes - std::min(bytes, block_data) + block_bytes; }

  // Returns whether this object has these positions.
  bool owns(const Runs& runs) const {
    return runs.striping() == striping() && runs.residue() == residue;
  }

  // Returns one past the last position that the object accepts.
  uint64_t end() const {
    return end_of(start.value_or(limits::position_max), limits::object_positions_max * stride);
  }

  // Returns the object's first position at or above `position`.
  uint64_t first_at(uint64_t position) const { return striping().first_at(position, residue); }

  // Returns one past the last position that may have a record.
  uint64_t records_end() const { return highest ? *highest + 1 : 0; }

  // Returns 0, or kBeyondStripe if the object does not accept the position.
  Failure take(uint64_t position) const {
    if (position < end()) return {};
    return {kBeyondStripe, end()};
  }

  // Returns 0, or kStaleEpoch if the object has a higher epoch.
  Failure admit(uint64_t request_epoch) const {
    if (request_epoch >= epoch) return {};
    return {kStaleEpoch, epoch};
  }

  // Returns 0, or kFrozen if only trim_to may trim positions.
  Failure check_thawed() const { return frozen ? Failure{kFrozen, trim_point} : Failure{}; }

  // Marks positions as used.
  void use(const Span& span) {
    highest = std::max(highest.value_or(span.last), span.last);
    holes.use(span, striping(), trim_point);
  }

  // Returns whether a position that has no record once had one.
  bool lost(uint64_t position) const { return position >= trim_point && !holes.allow(position); }

  // Returns whether lost() is true of a position in [begin, end).
  bool lost(uint64_t begin, uint64_t end) const {
    uint64_t position = first_at(begin);
    for (const Span& hole : holes.runs) {
      if (hole.covers(position)) position = striping().next(hole.last);
    }
    return position < std::min(end, holes.accounted);
  }

  // Returns the object's first position at or above `position` that may be unwritten.
  std::optional<uint64_t> unwritten(uint64_t position) const {
    const uint64_t found = first_at(holes.next(first_at(std::max(position, trim_point))));
    return found <= limits::position_max ? std::optional(found) : std::nullopt;
  }

  // Subtracts entries from the counters. The counters stop at zero, because damaged records can
  // make them too low.
  void forget(uint64_t gone_entries, uint64_t gone_bytes) {
    entries -= std::min(entries, gone_entries);
    bytes -= std::min(bytes, gone_bytes);
  }
};

template <typename T>
using with_runs = decltype(T::runs);

// Loads the header for a method. Returns -EINVAL if the request contains positions of another
// object, and kStaleEpoch if its epoch is lower than the object's.
template <typename Request>
Failure enter(Object& object, const Request& request, Header* header) {
  ZLOG_TRY(Header::load(object, header));
  if constexpr (wire::has<with_runs, Request>) {
    if (!header->owns(request.runs)) return {-EINVAL};
  }
  return header->admit(request.epoch);
}

}  // namespace zlog
