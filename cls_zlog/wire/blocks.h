#pragma once

#include <cstdint>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/fields.h"

// The data of entries in messages. Consecutive entries may be compressed together as a block. The
// class stores, checks and returns blocks; only clients read their contents (client/blocks.h).
namespace zlog {

// Returns whether `ends` divide `data_bytes` bytes into entries, each within the size limit.
inline bool cut(const wire::Column<uint32_t>& ends, uint64_t data_bytes) {
  uint32_t begin = 0;
  for (uint32_t i = 0; i < ends.size(); i++) {
    if (ends[i] < begin || ends[i] - begin > limits::entry_bytes_max) return false;
    begin = ends[i];
  }
  return begin == data_bytes;
}

// A block of a write.
struct WriteBlock {
  uint32_t entries = 0;       // number of entries; they follow those of the previous block
  uint32_t stored_bytes = 0;  // compressed
  uint32_t crc = 0;           // CRC-32C of the compressed bytes

  ZLOG_FIELDS(v) {
    v("entries", entries, wire::between(1, limits::entries_max));
    v("stored_bytes", stored_bytes, wire::between(1, limits::request_bytes_max));
    v("crc", crc);
  }
};

// Consecutive entries in the reply to a read whose data is in one block.
struct ReadBlock {
  uint32_t first = 0;  // index in the reply
  uint32_t entries = 0;
  Compression compression = Compression::kNone;
  uint32_t plain_bytes = 0;   // of the whole block
  uint32_t skip = 0;          // plain bytes before the first entry's
  uint32_t stored_bytes = 0;  // 0: these entries are in the previous block too

  ZLOG_FIELDS(v) {
    v("first", first, wire::at_most(limits::entries_max - 1));
    v("entries", entries, wire::between(1, limits::entries_max));
    v("compression", compression);
    v("plain_bytes", plain_bytes, wire::between(1, limits::request_bytes_max));
    v("skip", skip);
    v("stored_bytes", stored_bytes);
  }
};

}  // namespace zlog
