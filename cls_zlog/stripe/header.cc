#include "cls_zlog/stripe/header.h"

#include <algorithm>
#include <cerrno>

#include "cls_zlog/base/envelope.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/wire.h"

namespace zlog {
namespace {

constexpr const char* kAttribute = "zlog.header";

bool valid(const Header& header) {
  return header.epoch >= 1 && header.stride >= 1 && header.stride <= limits::width_max &&
         header.residue < header.stride && header.highest <= limits::position_max &&
         header.trim_point <= limits::position_max + 1 &&
         (header.has_position ? header.highest % header.stride == header.residue
                              : header.highest == 0) &&
         header.stream_end <= limits::stream_bytes_max;
}

}  // namespace

int Header::load(Object& object, Header* out) {
  std::string value;
  std::string_view body;
  if (const int r = load_attribute(object, kAttribute, &value, &body); r < 0) return r;
  wire::Reader reader(body);
  out->epoch = reader.u64();
  out->stride = reader.u32();
  out->residue = reader.u32();
  out->has_position = reader.u8() != 0;
  out->highest = reader.u64();
  out->trim_point = reader.u64();
  out->entries = reader.u64();
  out->bytes = reader.u64();
  out->records = reader.u64();
  out->stream_end = reader.u64();
  out->value_bytes = reader.u32();
  return reader.done() && valid(*out) ? 0 : -EIO;
}

int Header::save(Object& object) const {
  std::string body;
  wire::Writer writer(&body);
  writer.u64(epoch).u32(stride).u32(residue).u8(has_position ? 1 : 0).u64(highest);
  writer.u64(trim_point).u64(entries).u64(bytes).u64(records).u64(stream_end).u32(value_bytes);
  return object.attr_set(kAttribute, wrap(kAttribute, body));
}

Highest Header::taken() const {
  Highest taken{has_position, highest};
  if (trim_point > residue) {
    const uint64_t below = residue + (trim_point - 1 - residue) / stride * stride;
    taken = {true, has_position ? std::max(highest, below) : below};
  }
  return taken;
}

Fullness Header::fullness() const {
  const auto shown = static_cast<uint32_t>(std::min<uint64_t>(records, UINT32_MAX));
  return {shown, std::max(stream_end, bytes)};
}

void Header::raise(uint64_t last) {
  highest = has_position ? std::max(highest, last) : last;
  has_position = true;
}

void Header::forget(uint64_t gone_entries, uint64_t gone_bytes) {
  entries -= std::min(entries, gone_entries);
  bytes -= std::min(bytes, gone_bytes);
}

}  // namespace zlog
