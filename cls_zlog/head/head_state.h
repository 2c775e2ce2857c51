#pragma once

#include <cstdint>
#include <string>

#include "cls_zlog/base/object.h"

namespace zlog::head {

// What the attribute of a head object holds, docs/formats/head.md. Every method on the object loads
// it first: with it the log exists.
struct Head {
  uint64_t log_id = 0;
  uint64_t counter = 0;     // the last epoch handed out
  uint64_t newest = 0;      // epoch of the newest view; 0 none
  uint64_t tail_floor = 0;  // a new epoch's tail begins at or above it
  uint64_t trim_point = 0;  // every position below it is trimmed
  uint64_t sources = 0;     // of deliveries there have been: the incarnation of the newest one
  std::string name;

  // -ENOENT: there is no such log. -EIO: the attribute is damaged.
  static int load(Object& object, Head* out);
  int save(Object& object) const;
};

}  // namespace zlog::head
