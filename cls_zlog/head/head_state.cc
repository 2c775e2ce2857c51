#include "cls_zlog/head/head_state.h"

#include <cerrno>

#include "cls_zlog/base/envelope.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/base/names.h"
#include "cls_zlog/wire/wire.h"

namespace zlog::head {
namespace {

constexpr const char* kAttribute = "zlog.head";

}  // namespace

int Head::load(Object& object, Head* out) {
  std::string value;
  std::string_view body;
  if (const int r = load_attribute(object, kAttribute, &value, &body); r < 0) return r;
  wire::Reader reader(body);
  out->log_id = reader.u64();
  out->counter = reader.u64();
  out->newest = reader.u64();
  out->tail_floor = reader.u64();
  out->trim_point = reader.u64();
  out->sources = reader.u64();
  out->name = reader.string(limits::log_name_bytes_max);
  const bool valid = reader.done() && out->newest <= out->counter &&
                     out->tail_floor <= limits::position_max + 1 &&
                     out->trim_point <= limits::position_max + 1 && valid_log_name(out->name);
  return valid ? 0 : -EIO;
}

int Head::save(Object& object) const {
  std::string body;
  wire::Writer writer(&body);
  writer.u64(log_id).u64(counter).u64(newest).u64(tail_floor).u64(trim_point).u64(sources);
  writer.string(name);
  return object.attr_set(kAttribute, wrap(kAttribute, body));
}

}  // namespace zlog::head
