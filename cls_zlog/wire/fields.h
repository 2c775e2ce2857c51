#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/base/names.h"
#include "cls_zlog/wire/runs.h"
#include "cls_zlog/wire/wire.h"

// Messages and stored values list their fields like this:
//
//   ZLOG_FIELDS(v) {
//     v("epoch", epoch, at_least(1));
//     v("create", create);
//   }
//
// The encoder, the decoder and the describer (describe/) visit the fields. The describer's output
// is the source of the documentation's tables and of generated Python code. Encoding by type:
//   bool                 u8, 0 or 1
//   uintN_t, enum        an integer, little-endian
//   optional<uint64_t>   u8 0 or 1, then u64, 0 without a value
//   string, string_view  a u32 length and the bytes; with raw(n), n bytes and no length
//   array<char, n>       n bytes
//   vector, map          a u32 count and the elements: strings, pairs of strings, or frames
//   Column<T>            integers; another field contains their number
//   Runs                 positions (runs.h)
#define ZLOG_FIELDS(v)  \
  template <typename V> \
  void each(V& v)  // NOLINT(bugprone-macro-parentheses): a parameter

namespace zlog::wire {

// Which text a string may have (names.h).
enum class Rule : uint8_t { kAny, kName, kNameOrNone, kAddress };

// The lowest and highest value of an integer or optional field. For a string, they limit its size
// in bytes, and for a list or column its number of elements.
struct Bounds {
  uint64_t min = 0;
  uint64_t max = UINT64_MAX;
  Rule rule = Rule::kAny;
  bool raw = false;   // a string without a length of its own
  bool each = false;  // another field has the number
  uint8_t version = 1;
  bool heeded = false;  // readers without the field refuse values above the minimum

  // Sets the version of the message in which the field was added. Earlier messages do not have the
  // field, which then keeps its initializer. describe/ checks that fields are in version order.
  constexpr Bounds since(uint8_t first) const {
    Bounds bounds = *this;
    bounds.version = first;
    return bounds;
  }
  // Makes readers of earlier versions refuse a message in which the field is not at its minimum.
  // The minimum must be the initializer's value.
  constexpr Bounds heed() const {
    Bounds bounds = *this;
    bounds.heeded = true;
    return bounds;
  }
  constexpr bool allow(uint64_t value) const { return min <= value && value <= max; }
};

constexpr Bounds any() { return {}; }
constexpr Bounds between(uint64_t min, uint64_t max) { return {min, max}; }
constexpr Bounds at_least(uint64_t min) { return {min, UINT64_MAX}; }
template <typename T>
constexpr Bounds at_most(T max) {
  return {0, static_cast<uint64_t>(max)};
}
constexpr Bounds raw(uint64_t bytes) { return {bytes, bytes, Rule::kAny, true}; }
constexpr Bounds number_of(uint64_t count) { return {count, count, Rule::kAny, false, true}; }
constexpr Bounds raw_number_of(uint64_t bytes) { return {bytes, bytes, Rule::kAny, true, true}; }
constexpr Bounds unit(uint8_t since) { return between(1, unit_max).since(since).heed(); }
constexpr Bounds position() { return at_most(limits::position_max); }
constexpr Bounds position_or_end() { return at_most(limits::position_max + 1); }
constexpr Bounds name() { return {1, limits::log_name_bytes_max, Rule::kName}; }
constexpr Bounds name_or_none() { return {0, limits::log_name_bytes_max, Rule::kNameOrNone}; }
constexpr Bounds names(uint64_t max) { return {0, max, Rule::kName}; }  // a list of names
constexpr Bounds address() { return {0, limits::address_bytes_max, Rule::kAddress}; }

inline bool follows(Rule rule, std::string_view text) {
  switch (rule) {
    case Rule::kAny:
      break;
    case Rule::kName:
      return valid_name(text);
    case Rule::kNameOrNone:
      return text.empty() || valid_name(text);
    case Rule::kAddress:
      return valid_address(text);
  }
  return true;
}

inline bool allows(const Bounds& bounds, std::string_view text) {
  return bounds.allow(text.size()) && follows(bounds.rule, text);
}

// Finds a message's version and compat (frame.h).
class Newest {
 public:
  template <typename T>
  void operator()(const char*, const T& value, const Bounds& bounds = any()) {
    version = std::max(version, bounds.version);
    if (bounds.heeded && amount(value) > bounds.min) compat = std::max(compat, bounds.version);
  }
  uint8_t version = 1;
  uint8_t compat = 1;

 private:
  template <typename T>
  static uint64_t amount(const T& value) {
    if constexpr (std::is_unsigned_v<T>) return value;
    return 0;  // fields of other types are not heeded
  }
  template <typename T>
  static uint64_t amount(const std::vector<T>& list) {
    return list.size();
  }
  static uint64_t amount(const std::string& text) { return text.size(); }
};

enum class Decoded { kOk, kMalformed, kTooNew };

template <typename T>
bool append_frame(const T& value, std::string* out);  // frame.h
template <typename T>
Decoded decode_frame(Reader* reader, T* out);

// Appends fields to a string. ok() is false if one was out of its bounds.
class Encoder {
 public:
  explicit Encoder(std::string* out) : out_(out), writer_(out) {}

  template <typename T>
  void operator()(const char*, const T& value, const Bounds& bounds = any()) {
    ok_ = ok_ && put(value, bounds);
  }
  bool ok() const { return ok_; }

 private:
  template <typename T>
  std::enable_if_t<std::is_unsigned_v<T>, bool> put(T value, const Bounds& bounds) {
    writer_.integer(value);
    return bounds.allow(value);
  }
  bool put(bool value, const Bounds&) {
    writer_.u8(value ? 1 : 0);
    return true;
  }
  template <typename T>
  std::enable_if_t<std::is_enum_v<T>, bool> put(T value, const Bounds& bounds) {
    return put(static_cast<std::underlying_type_t<T>>(value), bounds);
  }
  bool put(const std::optional<uint64_t>& value, const Bounds& bounds) {
    writer_.u8(value ? 1 : 0).u64(value.value_or(0));
    return !value || bounds.allow(*value);
  }
  bool put(std::string_view text, const Bounds& bounds) {
    if (!bounds.raw) writer_.u32(static_cast<uint32_t>(text.size()));
    writer_.bytes(text);
    return allows(bounds, text);
  }
  template <size_t n>
  bool put(const std::array<char, n>& bytes, const Bounds&) {
    writer_.bytes({bytes.data(), n});
    return true;
  }
  bool put(const Runs& runs, const Bounds&) {
    runs.encode(&writer_);
    return runs.count() > 0;
  }
  template <typename T>
  bool put(const Column<T>& column, const Bounds& bounds) {
    writer_.bytes(column.bytes());
    return bounds.allow(column.size());
  }
  template <typename T>
  bool put(const std::vector<T>& list, const Bounds& bounds) {
    writer_.u32(static_cast<uint32_t>(list.size()));
    bool good = bounds.allow(list.size());
    for (const T& element : list) good = good && put_element(element, bounds);
    return good;
  }
  bool put(const std::map<std::string, std::string>& map, const Bounds& bounds) {
    writer_.u32(static_cast<uint32_t>(map.size()));
    for (const auto& [key, value] : map) writer_.string(key).string(value);
    return bounds.allow(map.size());
  }
  bool put_element(const std::string& text, const Bounds& bounds) {
    writer_.string(text);
    return follows(bounds.rule, text);
  }
  template <typename T>
  bool put_element(const T& element, const Bounds&) {
    return append_frame(element, out_);
  }

  std::string* out_;
  Writer writer_;
  bool ok_ = true;
};

// Decodes fields from untrusted bytes. ok() is false once a field was out of its bounds. The
// decoder allocates memory only in proportion to the input.
class Decoder {
 public:
  explicit Decoder(std::string_view fields) : reader_(fields) {}

  template <typename T>
  void operator()(const char*, T& value, const Bounds& bounds = any()) {
    if (bounds.version > 1 && reader_.ok() && reader_.rest().empty()) return;
    take(value, bounds);
  }
  bool ok() const { return reader_.ok(); }

  // Returns whether an element of a list needs a later version.
  bool too_new() const { return too_new_; }

  // Returns the fields of later versions.
  std::string_view rest() const { return reader_.rest(); }

 private:
  void check(bool good) {
    if (!good) reader_.fail();
  }
  template <typename T>
  std::enable_if_t<std::is_unsigned_v<T>> take(T& value, const Bounds& bounds) {
    value = reader_.integer<T>();
    check(bounds.allow(value));
  }
  void take(bool& value, const Bounds&) {
    const uint8_t byte = reader_.u8();
    value = byte == 1;
    check(byte <= 1);
  }
  template <typename T>
  std::enable_if_t<std::is_enum_v<T>> take(T& value, const Bounds& bounds) {
    std::underlying_type_t<T> number = 0;
    take(number, bounds);
    value = static_cast<T>(number);
  }
  void take(std::optional<uint64_t>& value, const Bounds& bounds) {
    bool there = false;
    take(there, any());
    uint64_t number = 0;
    take(number, there ? bounds : at_most(0u));
    value = there ? std::optional<uint64_t>(number) : std::nullopt;
  }
  void take(std::string_view& text, const Bounds& bounds) {
    text = bounds.raw ? reader_.bytes(bounds.max) : reader_.string();
    check(allows(bounds, text));
  }
  void take(std::string& text, const Bounds& bounds) {
    std::string_view view;
    take(view, bounds);
    text = view;
  }
  template <size_t n>
  void take(std::array<char, n>& bytes, const Bounds&) {
    reader_.bytes(n).copy(bytes.data(), n);
  }
  void take(Runs& runs, const Bounds&) { check(Runs::decode(&reader_, &runs)); }
  template <typename T>
  void take(Column<T>& column, const Bounds& bounds) {
    column = reader_.column<T>(static_cast<uint32_t>(bounds.max));
  }
  template <typename T>
  void take(std::vector<T>& list, const Bounds& bounds) {
    const uint32_t count = reader_.u32();
    check(bounds.allow(count) && count <= reader_.rest().size() / sizeof(uint32_t));
    list.clear();
    if (!ok()) return;
    list.reserve(count);
    for (uint32_t i = 0; i < count && ok(); i++) take_element(list.emplace_back(), bounds);
  }
  void take(std::map<std::string, std::string>& map, const Bounds& bounds);
  void take_element(std::string& text, const Bounds& bounds) {
    text = reader_.string();
    check(follows(bounds.rule, text));
  }
  template <typename T>
  void take_element(T& element, const Bounds&) {
    const Decoded decoded = decode_frame(&reader_, &element);
    too_new_ = too_new_ || decoded == Decoded::kTooNew;
    check(decoded != Decoded::kMalformed);
  }

  Reader reader_;
  bool too_new_ = false;
};

// Keys must ascend, so that a map has only one encoding.
inline void Decoder::take(std::map<std::string, std::string>& map, const Bounds& bounds) {
  const uint32_t count = reader_.u32();
  map.clear();
  check(bounds.allow(count));
  for (uint32_t i = 0; i < count && ok(); i++) {
    const std::string_view key = reader_.string();
    const std::string_view value = reader_.string();
    check(map.empty() || key > map.rbegin()->first);
    if (ok()) map.emplace_hint(map.end(), key, value);
  }
}

}  // namespace zlog::wire
