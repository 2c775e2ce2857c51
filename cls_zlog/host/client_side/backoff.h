#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace zlog {

// Pauses after conflicts: the first repetition comes at once, later ones after up to so long. Longer
// ones bring no more done, since one of those who try at the same time always succeeds, and leave
// behind who lost most often.
inline constexpr std::chrono::microseconds kPause{500};
inline constexpr unsigned kPauseDoublings = 3;

inline std::chrono::microseconds pause_after(unsigned conflicts) {
  if (conflicts < 2) return {};
  static thread_local std::minstd_rand random{std::random_device()()};
  const auto most = kPause.count() << std::min(conflicts - 2, kPauseDoublings);
  return std::chrono::microseconds(std::uniform_int_distribution<int64_t>(0, most)(random));
}

}  // namespace zlog
