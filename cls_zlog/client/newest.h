#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zlog {

// Which of several sound copies of a stored value is the newest: each of the others is the same, or
// from before it by all that only grows (Header::follows, Head::follows). None where two contradict
// each other; of values that have no such order, where they are not all the same.
std::optional<size_t> newest(std::string_view name, const std::vector<std::string>& values);

}  // namespace zlog
