#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace zlog {

// Returns a number in hex with leading zeros up to `digits` digits, so that keys sort by it.
inline std::string hex(uint64_t number, size_t digits) {
  while (digits < 16 && number >> (4 * digits) != 0) digits++;
  std::string text(digits, '0');
  for (size_t place = digits; number != 0; number >>= 4) {
    text[--place] = "0123456789abcdef"[number & 15];
  }
  return text;
}

}  // namespace zlog
