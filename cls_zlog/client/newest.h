#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zlog {

// Returns the index of the newest of several intact replicas of a stored value. All others must be
// equal to it, or older according to Header::follows or Head::follows. Returns nothing if replicas
// contradict each other, or if values that have no such order differ.
std::optional<size_t> newest(std::string_view name, const std::vector<std::string>& values);

}  // namespace zlog
