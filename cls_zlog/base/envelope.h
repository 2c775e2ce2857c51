#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cls_zlog/base/object.h"

namespace zlog {

// What every stored value is wrapped in, so that damage is seen before it is believed:
//
//   value := version u8, crc u32, length u32, body (length bytes), payload (the rest)
//
// crc is the CRC-32C of the name or key under which the value is stored, then version, length and
// body: a value that turns up under another key is damaged too. The payload is not covered: it is
// entry data, which has CRCs of its own. docs/formats/envelope.md.

constexpr uint32_t kEnvelopeBytes = 1 + 4 + 4;  // in front of the body

std::string wrap(std::string_view key, std::string_view body, std::string_view payload = {});

// A value taken apart; the views point into it.
struct Unwrapped {
  std::string_view body;
  std::string_view payload;
};

// False for a value that is damaged, is stored under another key, or has a version that is not
// ours.
bool unwrap(std::string_view key, std::string_view value, Unwrapped* out);

// Reads an attribute that is a value without payload into `value`; `body` points into that.
// -ENOENT where there is no such attribute: the object is none of this kind. -EIO for damage.
int load_attribute(Object& object, const char* name, std::string* value, std::string_view* body);

}  // namespace zlog
