#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "cls_zlog/base/limits.h"

namespace zlog::wire {

// The value with its bytes in little-endian order, or back: the identity on most machines.
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

// Little-endian, fixed-width integers at any address.
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

// An array of integers inside somebody else's bytes, which must outlive it. Made by Reader::column,
// which has checked that all `size()` of them are there.
template <typename T>
class Column {
 public:
  Column() = default;
  Column(const char* at, uint32_t size) : at_(at), size_(size) {}

  uint32_t size() const { return size_; }
  T operator[](uint32_t i) const { return load<T>(at_ + size_t{i} * sizeof(T)); }

  // `count` of them from the `first` on, as they are on the wire.
  std::string_view bytes(uint32_t first, uint32_t count) const {
    return {at_ + size_t{first} * sizeof(T), size_t{count} * sizeof(T)};
  }

 private:
  const char* at_ = nullptr;
  uint32_t size_ = 0;
};

// Reads fields off untrusted bytes. The first read past the end makes it fail for good: every
// later read gives 0 or nothing, so that a decoder may read on and ask ok() once. It never
// allocates and the views that it hands out point into its input.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  uint8_t u8() { return integer<uint8_t>(); }
  uint32_t u32() { return integer<uint32_t>(); }
  uint64_t u64() { return integer<uint64_t>(); }

  // A byte that is 0 or 1.
  bool flag() {
    const uint8_t value = u8();
    if (value > 1) fail();
    return value == 1;
  }

  // The next `length` bytes.
  std::string_view bytes(uint64_t length) {
    if (!ok_ || length > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }

  // A u32 length and as many bytes; fails above `bytes_max`.
  std::string_view string(uint32_t bytes_max) {
    const uint32_t length = u32();
    if (length > bytes_max) fail();
    return bytes(length);
  }

  // `size` integers in a row.
  template <typename T>
  Column<T> column(uint32_t size) {
    const std::string_view taken = bytes(uint64_t{size} * sizeof(T));
    return ok_ ? Column<T>(taken.data(), size) : Column<T>();
  }

  void fail() {
    ok_ = false;
    rest_ = {};
  }
  bool ok() const { return ok_; }
  std::string_view rest() const { return rest_; }

  // Nothing failed and nothing is left over.
  bool done() const { return ok_ && rest_.empty(); }

 private:
  template <typename T>
  T integer() {
    const std::string_view taken = bytes(sizeof(T));
    return ok_ ? load<T>(taken.data()) : T{0};
  }

  std::string_view rest_;
  bool ok_ = true;
};

// Appends fields to a string.
class Writer {
 public:
  explicit Writer(std::string* out) : out_(out) {}

  Writer& u8(uint8_t value) { return integer(value); }
  Writer& u32(uint32_t value) { return integer(value); }
  Writer& u64(uint64_t value) { return integer(value); }
  Writer& flag(bool value) { return u8(value ? 1 : 0); }
  Writer& bytes(std::string_view value) {
    out_->append(value);
    return *this;
  }
  Writer& string(std::string_view value) {
    return u32(static_cast<uint32_t>(value.size())).bytes(value);
  }

 private:
  template <typename T>
  Writer& integer(T value) {
    append(out_, value);
    return *this;
  }

  std::string* out_;
};

// A message is a version byte and its fields.
inline std::string new_message() { return std::string(1, static_cast<char>(limits::wire_version)); }

// A reader of a message's fields; it has failed already when the version is not ours.
inline Reader open_message(std::string_view bytes) {
  Reader reader(bytes);
  if (reader.u8() != limits::wire_version) reader.fail();
  return reader;
}

// The same for a request, whose length is limited as well.
inline Reader open_request(std::string_view bytes) {
  return open_message(bytes.size() <= limits::request_bytes_max ? bytes : std::string_view());
}

// What a decoder returns.
inline int result(bool good) { return good ? 0 : -EINVAL; }

}  // namespace zlog::wire
