#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/frame.h"

namespace zlog {

// What every stored value is wrapped in: a frame (frame.h) with a checksum, so that damage is seen
// before it is believed.
//
//   value := version u8, compat u8, length u32, crc u32, fields (length bytes), payload (the rest)
//
// crc is the CRC-32C of the name or key under which the value is stored, then version, compat,
// length and fields: a value that turns up under another key is damaged too. The payload is not
// covered: it is entry data, which has CRCs of its own. This layout never changes, so that a value
// that a later version stored can be told from a damaged one. docs/formats/envelope.md.
constexpr uint32_t kEnvelopeBytes = 1 + 1 + 4 + 4;  // in front of the fields

// A value taken apart; the views point into it.
struct Envelope {
  wire::Versions versions;
  std::string_view fields;
  std::string_view payload;
};

std::string wrap(std::string_view key, const wire::Versions& versions, std::string_view fields,
                 std::string_view payload = {});

// False for a value that is damaged, or is stored under another key.
bool unwrap(std::string_view key, std::string_view value, Envelope* out);

template <typename T>
std::string to_stored(std::string_view key, const T& value) {
  std::string fields;
  wire::append_fields(value, &fields);
  return wrap(key, wire::versions_of(value), fields);
}

// 0; -EIO: the value is damaged; kStoredTooNew, with the version that is needed.
template <typename T>
Failure from_stored(std::string_view key, std::string_view value, T* out) {
  Envelope stored;
  if (!unwrap(key, value, &stored)) return {-EIO};
  switch (wire::decode_fields(stored.versions, stored.fields, out)) {
    case wire::Decoded::kOk:
      return {stored.payload.empty() ? 0 : -EIO};
    case wire::Decoded::kTooNew:
      return {kStoredTooNew, stored.versions.compat};
    case wire::Decoded::kMalformed:
      break;
  }
  return {-EIO};
}

// An attribute that holds such a value. -ENOENT: there is none, the object is none of this kind.
template <typename T>
Failure load_attribute(Object& object, const char* name, T* out) {
  std::string value;
  const int r = object.attr_get(name, &value);
  if (r != 0) return {r == -ENODATA ? -ENOENT : r};
  return from_stored(name, value, out);
}

template <typename T>
int save_attribute(Object& object, const char* name, const T& value) {
  return object.attr_set(name, to_stored(name, value));
}

}  // namespace zlog
