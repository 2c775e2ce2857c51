#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cls_zlog/base/striping.h"

// The keys of records and chunks, each of which covers consecutive positions of an object. A key is
// a prefix, the last position in 16 hex digits, a dot, and the number of positions in hex. The
// record or chunk that covers position p is therefore found at the first key >= p.
namespace zlog {

std::string span_key(std::string_view prefix, const Span& span, const Striping& striping);

// Returns a string that sorts after the keys of all spans that end below `position`, and before the
// keys of all other spans.
std::string span_key_bound(std::string_view prefix, uint64_t position);

// Sets `out` to the positions of a key. Returns false if the key is malformed or cannot belong to
// this object.
bool parse_span_key(std::string_view prefix, std::string_view key, const Striping& striping,
                    uint32_t residue, Span* out);

}  // namespace zlog
