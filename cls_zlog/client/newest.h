#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zlog {

// Which of several intact replicas of a stored value is the newest: all others are the same, or
// older by Header::follows or Head::follows. None if two contradict each other, or if values
// without such an order differ.
std::optional<size_t> newest(std::string_view name, const std::vector<std::string>& values);

}  // namespace zlog
