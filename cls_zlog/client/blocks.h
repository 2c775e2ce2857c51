#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cls_zlog/base/buffer.h"
#include "cls_zlog/base/codes.h"
#include "cls_zlog/wire/read_reply.h"

namespace zlog {

// A block holds entries of so much data, but for one that is larger by itself. What is read of it is
// decompressed in full.
constexpr size_t block_bytes_max = 256u << 10;

// Below this, compressing the data of one request saves less than it costs.
constexpr size_t compress_bytes_min = 1024;

// Whether so many bytes are worth being compressed to so many: by a sixteenth less, at least.
constexpr bool pays(size_t plain_bytes, size_t stored_bytes) {
  return stored_bytes <= plain_bytes - plain_bytes / 16;
}

// Appends the compressed bytes; false, and nothing appended: it can't be done.
bool compress(Compression compression, std::string_view plain, std::string* out);

// Fills `out`; false: these bytes do not decompress to just as many.
bool decompress(Compression compression, std::string_view stored, char* out, size_t plain_bytes);

// Replaces what a reply has in blocks by their entries' data, and answers what keeps that. The data
// of a block that is damaged becomes zeros, which fail the entries' checksums.
Buffer open_blocks(ReadReply* reply);

}  // namespace zlog
