#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cls_zlog/base/buffer.h"
#include "cls_zlog/base/codes.h"
#include "cls_zlog/wire/read_reply.h"

namespace zlog {

// The maximum size of a block's data; an entry that is larger gets its own block. A reader must
// decompress the whole block to read one of its entries.
constexpr size_t block_bytes_max = 256u << 10;

// If a request has less data, compressing it costs more than it saves.
constexpr size_t compress_bytes_min = 1024;

// Returns whether compression saves at least a sixteenth.
constexpr bool pays(size_t plain_bytes, size_t stored_bytes) {
  return stored_bytes <= plain_bytes - plain_bytes / 16;
}

// Appends the compressed bytes to `out`. Returns false, and appends nothing, if compression fails.
bool compress(Compression compression, std::string_view plain, std::string* out);

// Fills `out`. Returns false if the bytes do not decompress to exactly `plain_bytes`.
bool decompress(Compression compression, std::string_view stored, char* out, size_t plain_bytes);

// Decompresses a reply's blocks in place, and returns the owner of the plain data. The data of a
// damaged block becomes zeros, which then fail the entries' checksums.
Buffer open_blocks(ReadReply* reply);

}  // namespace zlog
