#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cls_zlog/wire/frame.h"

// What runs a method, of all kinds of objects.
namespace zlog {

// A kind of stored values, and the newest version of it that is understood.
struct Format {
  std::string name;
  uint8_t version = 1;

  template <typename V>
  void each(V& v) {
    v("name", name, wire::name());
    v("version", version, wire::at_least(1));
  }
};

struct VersionReply {
  // Of the process that answers, where each copy of an object has one of its own: a random number
  // that it makes when it starts. 0: one process answers for all copies.
  uint64_t instance = 0;
  std::string release;    // of zlog
  uint32_t protocol = 0;  // grows with each method, and with each field of a message
  std::vector<Format> formats;

  template <typename V>
  void each(V& v) {
    v("instance", instance);
    v("release", release, wire::name());
    v("protocol", protocol);
    v("formats", formats, wire::at_most(limits::list_page_max));
  }
};

}  // namespace zlog
