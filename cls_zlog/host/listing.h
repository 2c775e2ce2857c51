#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace zlog {

// A page of the names of a store's objects that begin in some way.
struct Listing {
  // How many objects one page is about at most. On Ceph these are objects of all names.
  static constexpr size_t kObjectsMax = 1024;

  std::string next;  // where to go on; empty: nowhere
  std::vector<std::string> names;

  // `next`, then each name behind a NUL.
  std::string encode() const {
    std::string out = next;
    for (const std::string& name : names) {
      out.push_back('\0');
      out.append(name);
    }
    return out;
  }
};

inline bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

}  // namespace zlog
