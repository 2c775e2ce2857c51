#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zlog {

// Returns the index of the newest of several intact replicas of a stored value. Replicas of a
// header or head can differ, and are ordered by follows(); other replicas must be equal. Returns
// nullopt if the replicas contradict each other.
std::optional<size_t> newest(std::string_view name, const std::vector<std::string>& values);

}  // namespace zlog
