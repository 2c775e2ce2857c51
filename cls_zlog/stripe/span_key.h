#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cls_zlog/base/striping.h"

// Keys of records and chunks, which cover consecutive positions of an object. A key consists of a
// prefix, the last position in 16 hex digits, a dot, and the number of positions in hex. If a
// record or chunk covers position p, its key is the first one >= p.
namespace zlog {

std::string span_key(std::string_view prefix, const Span& span, const Striping& striping);

// Returns a string that sorts after the keys of all spans that end below `position`, and before all
// other keys.
std::string span_key_bound(std::string_view prefix, uint64_t position);

// Sets `out` to the positions of a key. Returns false if span_key() cannot have made the key for
// this object.
bool parse_span_key(std::string_view prefix, std::string_view key, const Striping& striping,
                    uint32_t residue, Span* out);

}  // namespace zlog
