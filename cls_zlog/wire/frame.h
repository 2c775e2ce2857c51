#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/fields.h"

// A message's fields are in a frame, and new fields are added at its end:
//
//   frame := version u8, compat u8, length u32, fields (length bytes)
//
// `version` is the version of the newest field, and `compat` is the oldest version whose readers
// understand the frame. A reader accepts a frame if its compat is not above the reader's own
// version. It ignores fields that it does not know, and leaves missing fields at their
// initializers. A change that older readers must not ignore also raises compat.
namespace zlog::wire {

constexpr size_t kFrameBytes = 1 + 1 + 4;  // before the fields

// The fields of a stored value that only a later version knows. They are kept when this version
// stores the value again.
struct Further {
  uint8_t version = 0;
  uint8_t compat = 0;
  std::string fields;
};

// A message that is also stored, with the fields of later versions.
template <typename T>
struct Kept : T {
  Further further;
};

// Whether one of the expressions below is valid for T.
template <template <typename> class Expression, typename T, typename = void>
constexpr bool has = false;
template <template <typename> class Expression, typename T>
constexpr bool has<Expression, T, std::void_t<Expression<T>>> = true;

template <typename T>
using further = decltype(T::further);
template <typename T>
using valid = decltype(std::declval<const T&>().valid());
template <typename T>
using versions = decltype(std::declval<const T&>().versions());
template <typename T>
using needs = decltype(std::declval<const T&>().needs());
template <typename T>
using take_data = decltype(std::declval<T&>().take_data(std::string_view()));

// Returns whether the fields are consistent with each other. The encoder and the decoder check the
// bounds of each single field.
template <typename T>
bool agrees(const T& value) {
  if constexpr (has<valid, T>) return value.valid();
  return true;
}

// Visits the fields of a value with a visitor that does not change them.
template <typename T, typename V>
void visit(const T& value, V& visitor) {
  const_cast<T&>(value).each(visitor);
}

struct Versions {
  uint8_t version;
  uint8_t compat;
};

// Returns the versions with which this program sends a message. If a message can have values that
// older readers must not ignore, its function needs() returns the compat that they require.
template <typename T>
Versions own_versions(const T& value) {
  if constexpr (has<versions, T>) {
    return value.versions();
  } else {
    Newest newest;
    visit(value, newest);
    if constexpr (has<needs, T>) return {newest.version, std::max(newest.compat, value.needs())};
    return {newest.version, newest.compat};
  }
}

// Returns the versions with which a value is sent or stored.
template <typename T>
Versions versions_of(const T& value) {
  Versions versions = own_versions(value);
  if constexpr (has<further, T>) {
    versions.version = std::max(versions.version, value.further.version);
    versions.compat = std::max(versions.compat, value.further.compat);
  }
  return versions;
}

// Appends the fields without the frame. Returns false if one is out of its bounds.
template <typename T>
bool append_fields(const T& value, std::string* out) {
  Encoder encoder(out);
  visit(value, encoder);
  if constexpr (has<further, T>) out->append(value.further.fields);
  return encoder.ok() && agrees(value);
}

template <typename T>
Decoded decode_fields(const Versions& versions, std::string_view fields, T* out) {
  if (versions.compat > own_versions(*out).version) return Decoded::kTooNew;
  Decoder decoder(fields);
  out->each(decoder);
  if (!decoder.ok()) return Decoded::kMalformed;
  if (decoder.too_new()) return Decoded::kTooNew;
  if (!agrees(*out)) return Decoded::kMalformed;
  if constexpr (has<further, T>) {
    out->further = {versions.version, versions.compat, std::string(decoder.rest())};
  }
  return Decoded::kOk;
}

// Writes the part of a frame before the fields.
inline void write_frame_head(const Versions& versions, size_t fields_bytes, char* out) {
  store(out, versions.version);
  store(out + 1, versions.compat);
  store(out + 2, static_cast<uint32_t>(fields_bytes));
}

template <typename T>
bool append_frame(const T& value, std::string* out) {
  const size_t begin = out->size();
  out->append(kFrameBytes, '\0');
  const bool good = append_fields(value, out);
  write_frame_head(versions_of(value), out->size() - begin - kFrameBytes, out->data() + begin);
  return good;
}

// Returns no failure, or the failure for bytes that are malformed or too new.
inline Failure failure_of(Decoded decoded, int malformed, const Failure& too_new) {
  if (decoded == Decoded::kOk) return {};
  return decoded == Decoded::kTooNew ? too_new : Failure{malformed};
}

template <typename T>
Decoded decode_frame(Reader* reader, T* out) {
  const uint8_t version = reader->u8();
  const uint8_t compat = reader->u8();
  const std::string_view fields = reader->string();
  if (!reader->ok() || compat > version) return Decoded::kMalformed;
  return decode_fields({version, compat}, fields, out);
}

// Returns the compat of a frame.
inline uint8_t compat_of(std::string_view bytes) {
  return bytes.size() < kFrameBytes ? 0 : static_cast<uint8_t>(bytes[1]);
}

// Encodes a message as one frame. Returns false, with `out` not valid, if a field is out of bounds.
template <typename T>
bool encode(const T& message, std::string* out) {
  out->clear();
  return append_frame(message, out);
}

// Returns the bytes of a message, which must be valid.
template <typename T>
std::string encoded(const T& message) {
  std::string bytes;
  encode(message, &bytes);
  return bytes;
}

// Decodes a message. A message with data takes the bytes after the frame in take_data().
template <typename T>
Decoded decode(std::string_view bytes, T* out) {
  Reader reader(bytes);
  if (const Decoded decoded = decode_frame(&reader, out); decoded != Decoded::kOk) return decoded;
  if constexpr (has<take_data, T>) {
    return out->take_data(reader.rest()) ? Decoded::kOk : Decoded::kMalformed;
  } else {
    return reader.rest().empty() ? Decoded::kOk : Decoded::kMalformed;
  }
}

}  // namespace zlog::wire
