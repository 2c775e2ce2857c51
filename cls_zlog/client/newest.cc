#include "cls_zlog/client/newest.h"

#include <algorithm>

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/stripe/header.h"

namespace zlog {
namespace {

template <typename T>
bool follows(std::string_view name, const std::string& later, const std::string& earlier) {
  T one, other;
  return from_stored(name, later, &one).code == 0 && from_stored(name, earlier, &other).code == 0 &&
         one.follows(other);
}

bool follows(std::string_view name, const std::string& later, const std::string& earlier) {
  if (name == Header::kAttribute) return follows<Header>(name, later, earlier);
  return name == head::Head::kAttribute && follows<head::Head>(name, later, earlier);
}

}  // namespace

std::optional<size_t> newest(std::string_view name, const std::vector<std::string>& values) {
  for (size_t i = 0; i < values.size(); i++) {
    const bool found = std::all_of(values.begin(), values.end(), [&](const std::string& other) {
      return other == values[i] ||
             (follows(name, values[i], other) && !follows(name, other, values[i]));
    });
    if (found) return i;
  }
  return std::nullopt;
}

}  // namespace zlog
