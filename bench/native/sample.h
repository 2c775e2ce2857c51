#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zlog::bench {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point began);

// What was measured: the seconds from the first call's beginning to the last one's end, and how
// long each call took.
struct Sample {
  double seconds = 0;
  std::vector<float> latencies;  // seconds
};

// Ends one call: 0, or a negative errno. May be called from any thread, also at once.
using Finish = std::function<void(int error)>;

// Starts a call. Answers false, with `finish` left alone, when there is nothing more to do.
using Start = std::function<bool(Finish finish)>;

// Keeps `in_flight` calls in flight until the time is up. Throws std::system_error when one failed.
Sample repeat(uint64_t in_flight, double seconds, const Start& start);

// Makes one call after the other in this thread until the time is up, or `call` answers false.
Sample repeat_alone(double seconds, const std::function<bool()>& call);

// Throws std::system_error when `error`, a negative errno, is one.
void check(int error, const std::string& what);

// `count` bytes that don't compress: the same in every run.
std::string noise(size_t count);

}  // namespace zlog::bench
