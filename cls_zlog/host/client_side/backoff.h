#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace zlog {

// The pause before a conflicting change is repeated: none before the first repetition, then a random
// one up to a growing limit. Longer pauses would not raise the throughput, since one of the clients
// that conflict always succeeds, and would hold up the client that lost most often.
inline constexpr std::chrono::microseconds kBackoff{500};
inline constexpr unsigned kBackoffDoublings = 3;

inline std::chrono::microseconds backoff(unsigned conflicts) {
  if (conflicts < 2) return {};
  static thread_local std::minstd_rand random{std::random_device()()};
  const auto most = kBackoff.count() << std::min(conflicts - 2, kBackoffDoublings);
  return std::chrono::microseconds(std::uniform_int_distribution<int64_t>(0, most)(random));
}

}  // namespace zlog
