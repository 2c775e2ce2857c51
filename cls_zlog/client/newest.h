#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zlog {

// Returns which of several intact replicas of a stored value is the newest. All others must be
// equal, or older according to Header::follows or Head::follows. Returns nothing if two replicas
// contradict each other, or if values without such an order differ.
std::optional<size_t> newest(std::string_view name, const std::vector<std::string>& values);

}  // namespace zlog
