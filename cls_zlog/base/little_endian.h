#pragma once

#include <cstring>
#include <string>
#include <type_traits>

namespace zlog::wire {

// Converts a value to little-endian byte order, or back. It changes nothing on most machines.
template <typename T>
T little_endian(T value) {
  static_assert(std::is_unsigned_v<T>);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  static_assert(sizeof(T) == 8 || sizeof(T) == 4 || sizeof(T) == 2 || sizeof(T) == 1);
#endif
  return value;
}

// load() and store() access little-endian integers at any address.
template <typename T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return little_endian(value);
}

template <typename T>
void store(char* at, T value) {
  value = little_endian(value);
  std::memcpy(at, &value, sizeof(T));
}

template <typename T>
void append(std::string* out, T value) {
  char bytes[sizeof(T)];
  store(bytes, value);
  out->append(bytes, sizeof(T));
}

}  // namespace zlog::wire
