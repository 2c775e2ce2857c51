#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cls_zlog/wire/fields.h"

// How a message can grow. Its fields are in a frame:
//
//   frame := version u8, compat u8, length u32, fields (length bytes)
//
// `version` is that of the newest field in it, `compat` the oldest version whose readers understand
// it. A reader takes whatever has a compat up to its own version, passes over fields behind those
// that it knows, and takes one that is not there yet for what its initializer says. So a new field
// is one line, with since(); a change that older readers must not pass over raises compat.
namespace zlog::wire {

constexpr size_t kFrameBytes = 1 + 1 + 4;  // in front of the fields

// Fields of later versions, as a value was read with them: it is stored again with them.
struct Further {
  uint8_t version = 0;
  uint8_t compat = 0;
  std::string fields;
};

template <typename T, typename = void>
struct CompatOf : std::integral_constant<uint8_t, 1> {};
template <typename T>
struct CompatOf<T, std::void_t<decltype(T::compat)>> : std::integral_constant<uint8_t, T::compat> {
};

template <typename T, typename = void>
struct HasFurther : std::false_type {};
template <typename T>
struct HasFurther<T, std::void_t<decltype(T::further)>> : std::true_type {};

template <typename T, typename = void>
struct HasValid : std::false_type {};
template <typename T>
struct HasValid<T, std::void_t<decltype(std::declval<const T&>().valid())>> : std::true_type {};

// Whether the fields agree with each other, beyond the bounds of each.
template <typename T>
bool agrees(const T& value) {
  if constexpr (HasValid<T>::value) return value.valid();
  return true;
}

// Visits the fields of a value that the visitor does not change.
template <typename T, typename V>
void visit(const T& value, V& visitor) {
  const_cast<T&>(value).each(visitor);
}

struct Versions {
  uint8_t version;
  uint8_t compat;
};

template <typename T, typename = void>
struct HasVersions : std::false_type {};
template <typename T>
struct HasVersions<T, std::void_t<decltype(std::declval<const T&>().versions())>> : std::true_type {
};

template <typename T, typename = void>
struct HasNeeds : std::false_type {};
template <typename T>
struct HasNeeds<T, std::void_t<decltype(std::declval<const T&>().needs())>> : std::true_type {};

// Those of the message as this program knows it. Where only some values of a field must not be
// passed over, needs() says which compat this one has.
template <typename T>
Versions own_versions(const T& value) {
  if constexpr (HasVersions<T>::value) {
    return value.versions();
  } else {
    Newest newest;
    visit(value, newest);
    const uint8_t compat = std::max<uint8_t>(newest.compat, CompatOf<T>::value);
    if constexpr (HasNeeds<T>::value) return {newest.version, std::max(compat, value.needs())};
    return {newest.version, compat};
  }
}

// Those that a value is sent or stored with.
template <typename T>
Versions versions_of(const T& value) {
  Versions versions = own_versions(value);
  if constexpr (HasFurther<T>::value) {
    versions.version = std::max(versions.version, value.further.version);
    versions.compat = std::max(versions.compat, value.further.compat);
  }
  return versions;
}

// The fields alone.
template <typename T>
bool append_fields(const T& value, std::string* out) {
  Encoder encoder(out);
  visit(value, encoder);
  if constexpr (HasFurther<T>::value) out->append(value.further.fields);
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
  if constexpr (HasFurther<T>::value) {
    out->further = {versions.version, versions.compat, std::string(decoder.rest())};
  }
  return Decoded::kOk;
}

// Writes what is in front of a frame's fields.
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

template <typename T>
Decoded decode_frame(Reader* reader, T* out) {
  const uint8_t version = reader->u8();
  const uint8_t compat = reader->u8();
  const std::string_view fields = reader->string();
  if (!reader->ok() || compat > version) return Decoded::kMalformed;
  return decode_fields({version, compat}, fields, out);
}

// The compat of a frame.
inline uint8_t compat_of(std::string_view bytes) {
  return bytes.size() < kFrameBytes ? 0 : static_cast<uint8_t>(bytes[1]);
}

// A message is one frame. Behind that of some there is data, which their take_data() looks at.
template <typename T, typename = void>
struct HasData : std::false_type {};
template <typename T>
struct HasData<T, std::void_t<decltype(std::declval<T&>().take_data(std::string_view()))>>
    : std::true_type {};

// False: a field is out of its bounds, and `out` is of no use.
template <typename T>
bool encode(const T& message, std::string* out) {
  out->clear();
  return append_frame(message, out);
}

// The bytes of a message that is known to be sound.
template <typename T>
std::string encoded(const T& message) {
  std::string bytes;
  encode(message, &bytes);
  return bytes;
}

template <typename T>
Decoded decode(std::string_view bytes, T* out) {
  Reader reader(bytes);
  if (const Decoded decoded = decode_frame(&reader, out); decoded != Decoded::kOk) return decoded;
  bool good = false;
  if constexpr (HasData<T>::value) {
    good = out->take_data(reader.rest());
  } else {
    good = reader.rest().empty();
  }
  return good ? Decoded::kOk : Decoded::kMalformed;
}

}  // namespace zlog::wire
