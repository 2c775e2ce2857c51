#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cls_zlog/base/hex.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/envelope.h"

namespace zlog::head {

// A number as part of a key.
inline std::string hex_digits(uint64_t number) { return hex(number, 16); }

// Rows in an object's omap: a prefix and a name make the key, an envelope with the fields of T is
// the value. Names do not contain each other's prefix. Reads answer -ENOENT for a row that is not
// there, -EIO for a damaged one, and kStoredTooNew for one that a later version stored.
template <typename T>
class OmapTable {
 public:
  struct Row {
    std::string name;
    T value;
  };

  // `prefix` must outlive the table.
  constexpr explicit OmapTable(const char* prefix) : prefix_(prefix) {}

  std::string key(std::string_view name) const { return std::string(prefix_).append(name); }
  std::string key(uint64_t number) const { return key(hex_digits(number)); }

  // The key below all those of `number` and above: where a listing from there on begins.
  std::string key_before(uint64_t number) const {
    return number == 0 ? std::string(prefix_) : key(number - 1);
  }

  Failure get(Object& object, const std::string& key, T* out) const {
    std::string value;
    ZLOG_TRY(object.omap_get(key, &value));
    return from_stored(key, value, out);
  }

  int put(Object& object, const std::string& key, const T& value) const {
    return object.omap_set(key, to_stored(key, value));
  }

  // Rows with keys above `after`, ascending, `count_max` of them unless there are fewer; `more`:
  // some are left.
  Failure list(Object& object, std::string after, uint64_t count_max, std::vector<Row>* out,
               bool* more) const {
    const auto add = [&](const std::string& key, std::string_view value) {
      Row& row = out->emplace_back();
      row.name = key.substr(prefix_.size());
      return from_stored(key, value, &row.value);
    };
    return each(object, std::move(after), count_max, add, more);
  }

  // How many rows there are, or `count_max` if they are more.
  Failure count(Object& object, uint64_t count_max, uint64_t* out) const {
    *out = 0;
    const auto add = [&](const std::string&, std::string_view) {
      ++*out;
      return Failure();
    };
    bool more = false;
    return each(object, std::string(prefix_), count_max, add, &more);
  }

 private:
  // Calls `visit(key, value)` for rows until it fails. A host may list fewer keys than asked for.
  template <typename Visit>
  Failure each(Object& object, std::string after, uint64_t count_max, const Visit& visit,
               bool* more) const {
    *more = true;
    for (uint64_t left = count_max; *more && left > 0;) {
      Page page;
      ZLOG_TRY(object.omap_list(after, std::string(prefix_), left, &page, more));
      if (page.empty()) return {*more ? -EIO : 0};
      for (const auto& [key, value] : page) ZLOG_TRY(visit(key, value.bytes));
      after = page.rbegin()->first;
      left -= page.size();
    }
    return {};
  }

  std::string_view prefix_;
};

}  // namespace zlog::head
