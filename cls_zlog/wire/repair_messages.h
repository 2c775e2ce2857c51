#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/wire/frame.h"

// Messages about stored bytes of all kinds of objects. A `name` is an attribute's name or a key.
namespace zlog {

struct DamagedRequest {
  std::string_view after;  // check the keys above it; empty: check the attributes and all keys

  ZLOG_FIELDS(v) { v("after", after, wire::at_most(limits::key_bytes_max)); }
};

struct DamagedReply {
  std::vector<std::string> names;  // names of values that fail their checksum
  std::string next;                // continue with the keys above it; empty: done

  ZLOG_FIELDS(v) {
    v("names", names, wire::at_most(limits::list_page_max));
    v("next", next, wire::at_most(limits::key_bytes_max));
  }
};

struct SalvageRequest {
  std::string_view name;             // of an attribute or a key
  std::optional<uint64_t> position;  // instead of a name: position of a record in a stripe object

  ZLOG_FIELDS(v) {
    v("name", name, wire::at_most(limits::key_bytes_max));
    v("position", position, wire::position());
  }
};

struct SalvageReply {
  std::string name;
  uint64_t last = 0;  // of a record: the last position that it covers
  std::string value;
  std::string data;  // of a record in the bytestream: the data of its written entries

  ZLOG_FIELDS(v) {
    v("name", name, wire::at_most(limits::key_bytes_max));
    v("last", last, wire::position());
    v("value", value);
    v("data", data);
  }
};

struct HealRequest {
  std::string_view name;
  std::string_view value;
  std::string_view data;

  ZLOG_FIELDS(v) {
    v("name", name, wire::between(1, limits::key_bytes_max));
    v("value", value);
    v("data", data);
  }
};

}  // namespace zlog
