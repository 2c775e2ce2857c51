#pragma once

#include <algorithm>
#include <string_view>

#include "cls_zlog/base/limits.h"

namespace zlog {

// Returns whether this is a valid name for a log, cursor or producer: 1 to 128 characters from
// [A-Za-z0-9_.-], beginning with a letter, a digit or '_'.
inline bool valid_name(std::string_view name) {
  const auto alnum = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= limits::log_name_bytes_max && alnum(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return alnum(c) || c == '.' || c == '-'; });
}

// Returns whether this is a valid address of a sequencer: at most 256 printable ASCII characters
// without spaces. An empty address means that there is no sequencer.
inline bool valid_address(std::string_view address) {
  return address.size() <= limits::address_bytes_max &&
         std::all_of(address.begin(), address.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace zlog
