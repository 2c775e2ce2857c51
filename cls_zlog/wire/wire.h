#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cls_zlog/base/little_endian.h"

namespace zlog::wire {

// An array of integers in encoded bytes, which must outlive it.
template <typename T>
class Column {
 public:
  Column() = default;
  Column(const char* at, uint32_t size) : at_(at), size_(size) {}

  uint32_t size() const { return size_; }
  T operator[](uint32_t i) const { return load<T>(at_ + size_t{i} * sizeof(T)); }

  // Returns the encoded bytes of `count` elements, beginning with the element `first`.
  std::string_view bytes(uint32_t first, uint32_t count) const {
    return {at_ + size_t{first} * sizeof(T), size_t{count} * sizeof(T)};
  }
  std::string_view bytes() const { return {at_, size_t{size_} * sizeof(T)}; }

 private:
  const char* at_ = nullptr;
  uint32_t size_ = 0;
};

// Reads fields from untrusted bytes. After a read past the end, all reads return 0 or an empty
// view, so a decoder can check ok() once at the end. Views point into the input, without a copy.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  uint8_t u8() { return integer<uint8_t>(); }
  uint32_t u32() { return integer<uint32_t>(); }
  uint64_t u64() { return integer<uint64_t>(); }

  template <typename T>
  T integer() {
    const std::string_view taken = bytes(sizeof(T));
    return ok_ ? load<T>(taken.data()) : T{0};
  }

  std::string_view bytes(uint64_t length) {
    if (!ok_ || length > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }

  // Reads a u32 length and that many bytes.
  std::string_view string() { return bytes(u32()); }

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

  // Returns whether no read failed and nothing is left.
  bool done() const { return ok_ && rest_.empty(); }

 private:
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
  Writer& bytes(std::string_view value) {
    out_->append(value);
    return *this;
  }
  Writer& string(std::string_view value) {
    return u32(static_cast<uint32_t>(value.size())).bytes(value);
  }
  template <typename T>
  Writer& integer(T value) {
    append(out_, value);
    return *this;
  }

 private:
  std::string* out_;
};

}  // namespace zlog::wire
