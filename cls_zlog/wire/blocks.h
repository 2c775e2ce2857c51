#pragma once

#include <cstdint>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/fields.h"

// The data of entries in a row, compressed together. The class stores a block, checks it and hands
// it on as it is; only clients compress and decompress (client/blocks.h).
namespace zlog {

// One of the blocks of a write.
struct WriteBlock {
  uint32_t entries = 0;       // of the request, from where the block before it ended
  uint32_t stored_bytes = 0;  // compressed
  uint32_t crc = 0;           // CRC-32C of these

  template <typename V>
  void each(V& v) {
    v("entries", entries, wire::between(1, limits::entries_max));
    v("stored_bytes", stored_bytes, wire::between(1, limits::request_bytes_max));
    v("crc", crc);
  }
};

// Entries in a row of a read's reply whose data is part of a block.
struct ReadBlock {
  uint32_t first = 0;  // which entry of the reply
  uint32_t entries = 0;
  Compression compression = Compression::kNone;
  uint32_t plain_bytes = 0;   // of the whole block
  uint32_t skip = 0;          // plain bytes in front of the first entry's
  uint32_t stored_bytes = 0;  // 0: it is the block before, once more

  template <typename V>
  void each(V& v) {
    v("first", first, wire::at_most(limits::entries_max - 1));
    v("entries", entries, wire::between(1, limits::entries_max));
    v("compression", compression);
    v("plain_bytes", plain_bytes, wire::between(1, limits::request_bytes_max));
    v("skip", skip);
    v("stored_bytes", stored_bytes);
  }
};

}  // namespace zlog
