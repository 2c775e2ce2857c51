#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/host/async_host.h"

namespace zlog {

// A page of the names of a store's objects that begin with some prefix.
struct Listing {
  // The maximum number of objects that a page covers. On Ceph this counts objects with any name.
  static constexpr size_t kObjectsMax = 1024;

  std::string next;  // where the next page begins; empty if this is the last one
  std::vector<std::string> names;

  // Adds the next name. If the page is full, ends it after the last name and returns false.
  bool add(std::string_view name) {
    if (names.size() == kObjectsMax) {
      next = names.back();
      return false;
    }
    names.emplace_back(name);
    return true;
  }

  // Passes `done` the error, or the page: `next`, followed by each name after a NUL.
  void answer(int error, const Done& done) const {
    std::string out = next;
    for (const std::string& name : names) out.append(1, '\0').append(name);
    done(error, error == 0 ? Buffer::of(std::move(out)) : Buffer());
  }
};

inline bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

}  // namespace zlog
