#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/frame.h"

namespace zlog {

// Every stored value is a frame (frame.h) with a checksum (docs/formats/envelope.md):
//
//   value := version u8, compat u8, length u32, crc u32, fields (length bytes), payload (the rest)
//
// crc is the CRC-32C of the name or key under which the value is stored, followed by version,
// compat, length and fields. A value under a wrong key therefore counts as damaged. The payload is
// the entries' data, which has its own CRCs. This layout never changes, so that values of later
// versions do not look damaged.
constexpr uint32_t kEnvelopeBytes = 1 + 1 + 4 + 4;  // before the fields

// The parts of a value; the views point into it.
struct Envelope {
  wire::Versions versions;
  std::string_view fields;
  std::string_view payload;
};

std::string wrap(std::string_view key, const wire::Versions& versions, std::string_view fields,
                 std::string_view payload = {});

// Returns false if the value is damaged or was stored under another key.
bool unwrap(std::string_view key, std::string_view value, Envelope* out);

template <typename T>
std::string to_stored(std::string_view key, const T& value) {
  std::string fields;
  wire::append_fields(value, &fields);
  return wrap(key, wire::versions_of(value), fields);
}

// Decodes a stored value. Returns -EIO if it is damaged, and kStoredTooNew (with the required
// version) if only later versions can read it.
template <typename T>
Failure from_stored(std::string_view key, std::string_view value, T* out) {
  Envelope stored;
  if (!unwrap(key, value, &stored)) return {-EIO};
  const wire::Decoded decoded = wire::decode_fields(stored.versions, stored.fields, out);
  ZLOG_TRY(wire::failure_of(decoded, -EIO, {kStoredTooNew, stored.versions.compat}));
  return {stored.payload.empty() ? 0 : -EIO};
}

// Loads the value of an attribute. Returns -ENOENT if it or the object does not exist.
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
