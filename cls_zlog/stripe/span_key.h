#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cls_zlog/base/striping.h"

// Keys of records and chunks, which cover consecutive positions of an object: a prefix, the last
// position in 16 hex digits, a dot, and the number of positions in hex. The first such key >= p
// belongs to what covers p, if anything does.
namespace zlog {

std::string span_key(std::string_view prefix, const Span& span, const Striping& striping);

// A string between the keys that end below `position` and all others.
std::string span_key_bound(std::string_view prefix, uint64_t position);

// Reads the positions of a key. False: span_key() makes no such key for this object.
bool parse_span_key(std::string_view prefix, std::string_view key, const Striping& striping,
                    uint32_t residue, Span* out);

}  // namespace zlog
