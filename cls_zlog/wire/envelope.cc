#include "cls_zlog/wire/envelope.h"

#include "cls_zlog/base/crc32c.h"

namespace zlog {
namespace {

constexpr size_t kCrcAt = 1 + 1 + 4;

// Returns the checksum of an envelope. `head` has the bytes before the checksum.
uint32_t envelope_crc(std::string_view key, std::string_view head, std::string_view fields) {
  return crc32c(fields, crc32c(head, crc32c(key)));
}

}  // namespace

std::string wrap(std::string_view key, const wire::Versions& versions, std::string_view fields,
                 std::string_view payload) {
  std::string value;
  value.reserve(kEnvelopeBytes + fields.size() + payload.size());
  wire::Writer writer(&value);
  writer.u8(versions.version).u8(versions.compat).u32(static_cast<uint32_t>(fields.size()));
  writer.u32(envelope_crc(key, value, fields)).bytes(fields).bytes(payload);
  return value;
}

bool unwrap(std::string_view key, std::string_view value, Envelope* out) {
  wire::Reader reader(value);
  out->versions.version = reader.u8();
  out->versions.compat = reader.u8();
  const uint32_t length = reader.u32();
  const uint32_t crc = reader.u32();
  out->fields = reader.bytes(length);
  out->payload = reader.rest();
  return reader.ok() && crc == envelope_crc(key, value.substr(0, kCrcAt), out->fields);
}

}  // namespace zlog
