#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "cls_zlog/base/hex.h"
#include "cls_zlog/wire/envelope.h"

namespace zlog::head {

// Returns a number as it is written in keys.
inline std::string hex_digits(uint64_t number) { return hex(number, 16); }

// Turns the -ENOENT of a row that a request names into kNotFound.
inline Failure or_not_found(const Failure& loaded) {
  return loaded.code == -ENOENT ? Failure{kNotFound} : loaded;
}

// Turns the -ENOENT of a value that was not stored yet into success: it has its initial value.
inline Failure or_initial(const Failure& loaded) {
  return loaded.code == -ENOENT ? Failure() : loaded;
}

// A table in an object's omap. A row's key is the table's prefix followed by a name, and its value
// is an envelope with the fields of T. Calls return -ENOENT if the row does not exist, -EIO if it
// is damaged, and kStoredTooNew if a later version of zlog wrote it.
template <typename T>
class OmapTable {
 public:
  // `prefix` must outlive the table.
  constexpr explicit OmapTable(const char* prefix) : prefix_(prefix) {}

  std::string key(std::string_view name) const { return std::string(prefix_).append(name); }
  std::string key(uint64_t number) const { return key(hex_digits(number)); }

  // Returns a key such that a listing after it begins with `number`.
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

  // Calls use(name, value) for the first `count_max` rows whose keys are above `after`, in
  // ascending order. Sets `more` if there are further rows.
  template <typename Use>
  Failure list(Object& object, std::string after, uint64_t count_max, bool* more,
               const Use& use) const {
    const auto decode = [&](const std::string& key, std::string_view stored) {
      T value;
      ZLOG_TRY(from_stored(key, stored, &value));
      use(key.substr(prefix_.size()), std::move(value));
      return Failure();
    };
    return each(object, std::move(after), count_max, more, decode);
  }

  // Returns kLimitReached if there are already `max` rows.
  Failure check_space(Object& object, uint64_t max) const {
    uint64_t count = 0;
    bool more = false;
    const auto add = [&](const std::string&, std::string_view) {
      count++;
      return Failure();
    };
    ZLOG_TRY(each(object, std::string(prefix_), max, &more, add));
    return count < max ? Failure() : Failure{kLimitReached, max};
  }

 private:
  // Calls visit(key, value) until it fails. A host may list fewer keys than requested.
  template <typename Visit>
  Failure each(Object& object, std::string after, uint64_t count_max, bool* more,
               const Visit& visit) const {
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
