#pragma once

#include <cstdint>

#include "cls_zlog/wire/messages.h"
#include "cls_zlog/base/object.h"

namespace zlog {

// What a stripe object knows of itself; one attribute, read and written whole.
// docs/formats/header.md.
struct Header {
  uint64_t epoch = 0;        // the last one sealed; at least 1
  uint32_t stride = 1;       // positions from one of the object's to the next
  uint32_t residue = 0;      // p % stride of all of them
  bool has_position = false;  // something was written, filled or trimmed here
  uint64_t highest = 0;      // the highest such position
  uint64_t trim_point = 0;   // every position below it is trimmed
  uint64_t entries = 0;      // written and not trimmed
  uint64_t bytes = 0;        // data of those
  uint64_t records = 0;      // stored records
  uint64_t stream_end = 0;   // where the next batch goes in the bytestream; bytes
  uint32_t value_bytes = 0;  // no record's value is larger: bounds what a listing fetches

  // 0; -ENOENT: there is no such object, or it was never sealed; -EIO: the stored bytes are
  // damaged.
  static int load(Object& object, Header* out);
  int save(Object& object) const;

  // The highest position that can never be written any more, if any: the highest one used, or the
  // last one below the trim point.
  Highest taken() const;

  Fullness fullness() const;

  // Whether the request is about positions of this object.
  bool owns(const Runs& runs) const {
    return runs.stride() == stride && runs.residue() == residue;
  }

  // Notes that `last` is used now.
  void raise(uint64_t last);

  // Notes that written entries are gone. Never below zero: the counters are for people, and a
  // damaged record's share is not known.
  void forget(uint64_t gone_entries, uint64_t gone_bytes);
};

}  // namespace zlog
