#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cls_zlog/base/spacing.h"

// Keys of what covers positions of an object in a row: a prefix, the last position in 16 hex digits, a
// dot, and the number of positions in hex. So the first such key >= p belongs to what covers p, if
// anything does, and a value that is damaged is still known to cover them.
namespace zlog {

std::string span_key(std::string_view prefix, const Span& span, const Spacing& spacing);

// The least string above every such key that ends below `position`, and below every other one.
std::string span_key_bound(std::string_view prefix, uint64_t position);

// The positions of a key, in an object with these positions. False for what is no such key; only the
// spelling that span_key() gives is one.
bool parse_span_key(std::string_view prefix, std::string_view key, const Spacing& spacing,
                    uint32_t residue, Span* out);

}  // namespace zlog
