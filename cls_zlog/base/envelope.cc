#include "cls_zlog/base/envelope.h"

#include <cerrno>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/wire.h"

namespace zlog {
namespace {

uint32_t envelope_crc(std::string_view key, uint8_t version, std::string_view body) {
  char bytes[1 + sizeof(uint32_t)];
  wire::store(bytes, version);
  wire::store(bytes + 1, static_cast<uint32_t>(body.size()));
  return crc32c(body, crc32c({bytes, sizeof(bytes)}, crc32c(key)));
}

}  // namespace

std::string wrap(std::string_view key, std::string_view body, std::string_view payload) {
  std::string value;
  value.reserve(kEnvelopeBytes + body.size() + payload.size());
  wire::Writer writer(&value);
  writer.u8(limits::stored_version);
  writer.u32(envelope_crc(key, limits::stored_version, body));
  writer.string(body).bytes(payload);
  return value;
}

bool unwrap(std::string_view key, std::string_view value, Unwrapped* out) {
  wire::Reader reader(value);
  const uint8_t version = reader.u8();
  const uint32_t crc = reader.u32();
  const std::string_view body = reader.string(UINT32_MAX);
  if (!reader.ok() || version != limits::stored_version) return false;
  if (crc != envelope_crc(key, version, body)) return false;
  *out = {body, reader.rest()};
  return true;
}

int load_attribute(Object& object, const char* name, std::string* value, std::string_view* body) {
  const int r = object.attr_get(name, value);
  if (r == -ENODATA) return -ENOENT;
  if (r < 0) return r;
  Unwrapped stored;
  if (!unwrap(name, *value, &stored) || !stored.payload.empty()) return -EIO;
  *body = stored.body;
  return 0;
}

}  // namespace zlog
