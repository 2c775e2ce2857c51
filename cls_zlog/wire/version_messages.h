#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cls_zlog/wire/frame.h"

// The reply of `version`, on all kinds of objects.
namespace zlog {

// A kind of stored value, and its newest version that the program can read.
struct Format {
  std::string name;
  uint8_t version = 1;

  ZLOG_FIELDS(v) {
    v("name", name, wire::name());
    v("version", version, wire::at_least(1));
  }
};

struct VersionReply {
  // A random number that identifies the process that stores this replica of the object, or 0 if one
  // process stores all replicas.
  uint64_t instance = 0;
  std::string release;    // of zlog
  uint32_t protocol = 0;  // grows with each method, and with each field of a message
  std::vector<Format> formats;

  ZLOG_FIELDS(v) {
    v("instance", instance);
    v("release", release, wire::name());
    v("protocol", protocol);
    v("formats", formats, wire::at_most(limits::list_page_max));
  }
};

}  // namespace zlog
