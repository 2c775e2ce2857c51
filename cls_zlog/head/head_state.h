#pragma once

#include <cstdint>
#include <string>

#include "cls_zlog/wire/envelope.h"

namespace zlog::head {

// What the attribute of a head object holds, docs/formats/head.md. Every method on the object loads
// it first: with it the log exists.
struct Head {
  static constexpr const char* kAttribute = "zlog.head";

  uint64_t log_id = 0;
  uint64_t counter = 0;     // the last epoch handed out
  uint64_t newest = 0;      // epoch of the newest view; 0 none
  uint64_t tail_floor = 0;  // a new epoch's tail begins at or above it
  uint64_t trim_point = 0;  // every position below it is trimmed
  uint64_t sources = 0;     // of deliveries there have been: the incarnation of the newest one
  std::string name;
  wire::Further further;

  template <typename V>
  void each(V& v) {
    v("log_id", log_id);
    v("counter", counter);
    v("newest", newest);
    v("tail_floor", tail_floor, wire::position_or_end());
    v("trim_point", trim_point, wire::position_or_end());
    v("sources", sources);
    v("name", name, wire::name());
  }
  bool valid() const { return newest <= counter; }

  // Whether it is the same log's, and nothing of what only grows is less than in another one. The
  // tail floor does, apart from views that start a stripe.
  bool follows(const Head& other) const {
    return log_id == other.log_id && counter >= other.counter && newest >= other.newest &&
           (newest > other.newest || tail_floor >= other.tail_floor) &&
           trim_point >= other.trim_point && sources >= other.sources;
  }

  // -ENOENT: there is no such log.
  static Failure load(Object& object, Head* out) { return load_attribute(object, kAttribute, out); }

  // The head of the log of this id. -ENOENT: another log has got its name.
  static Failure load(Object& object, uint64_t log_id, Head* out) {
    ZLOG_TRY(load(object, out));
    return {out->log_id == log_id ? 0 : -ENOENT};
  }

  int save(Object& object) const { return save_attribute(object, kAttribute, *this); }
};

}  // namespace zlog::head
