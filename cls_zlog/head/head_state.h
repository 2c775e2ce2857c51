#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "cls_zlog/wire/envelope.h"
#include "cls_zlog/wire/head_messages.h"

namespace zlog::head {

// The attribute of a head object (docs/formats/head.md). The log exists if this attribute does.
struct Head : HeadReply {
  static constexpr const char* kAttribute = "zlog.head";

  uint64_t producers = 0;  // ever made: the incarnation of the newest one
  std::string name;
  wire::Further further;

  ZLOG_FIELDS(v) {
    v("log_id", log_id);
    v("counter", counter);
    v("newest", newest);
    v("tail_floor", tail_floor, wire::position_or_end());
    v("trim_point", trim_point, wire::position_or_end());
    v("producers", producers);
    v("name", name, wire::name());
  }
  bool valid() const { return newest <= counter; }

  // Returns whether this can be a later state of `other`, the head of the same log. The values
  // compared here never decrease, except that a view that starts a stripe may lower the tail floor.
  bool follows(const Head& other) const {
    return log_id == other.log_id && counter >= other.counter && newest >= other.newest &&
           (newest > other.newest || tail_floor >= other.tail_floor) &&
           trim_point >= other.trim_point && producers >= other.producers;
  }

  // Returns -ENOENT if the log does not exist.
  static Failure load(Object& object, Head* out) { return load_attribute(object, kAttribute, out); }

  int save(Object& object) const { return save_attribute(object, kAttribute, *this); }
};

// Loads the head for a method. Returns -ENOENT if the log does not exist or if another log now has
// its name. Every method on a head object returns -EIO if the stored bytes that it needs are
// damaged, and kStoredTooNew if a later version of zlog wrote them.
template <typename Request>
Failure enter(Object& object, const Request& request, Head* out) {
  ZLOG_TRY(Head::load(object, out));
  if constexpr (std::is_base_of_v<LogRequest, Request>) {
    return {out->log_id == request.log_id ? 0 : -ENOENT};
  }
  return {};
}

}  // namespace zlog::head
