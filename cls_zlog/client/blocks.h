#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cls_zlog/base/buffer.h"
#include "cls_zlog/base/codes.h"
#include "cls_zlog/wire/read_reply.h"

namespace zlog {

// The maximum size of a block's data, unless one entry is larger. Reading an entry decompresses its
// whole block.
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

// Replaces a reply's blocks with plain data, and returns the owner of that data. If a block is
// damaged, its data becomes zeros, which fail the entries' checksums.
Buffer open_blocks(ReadReply* reply);

}  // namespace zlog
