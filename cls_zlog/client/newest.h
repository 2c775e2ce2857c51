#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zlog {

// Returns the index of the newest of several intact replicas of a stored value. Headers and heads
// are ordered by follows(); all other values must be equal. Returns nothing if the replicas
// contradict each other.
std::optional<size_t> newest(std::string_view name, const std::vector<std::string>& values);

}  // namespace zlog
