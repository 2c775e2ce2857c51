#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zlog::bench {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point began);

// The result of a measurement: the time from the start of the first call to the end of the last
// one, and the duration of each call.
struct Sample {
  double seconds = 0;
  std::vector<float> latencies;  // seconds
};

// Ends a call with 0 or a negative errno. It may be called from any thread, even before the call
// returns.
using Finish = std::function<void(int error)>;

// Starts a call. Returns false, without using `finish`, if there is nothing more to do.
using Start = std::function<bool(Finish finish)>;

// Keeps `in_flight` calls in flight until the time is over. Throws std::system_error if one failed.
Sample repeat(uint64_t in_flight, double seconds, const Start& start);

// Makes one call after another in this thread until the time is over or `call` returns false.
Sample repeat_alone(double seconds, const std::function<bool()>& call);

// Throws std::system_error if `error` is a negative errno.
void check(int error, const std::string& what);

// Returns `count` bytes that do not compress and are the same in every run.
std::string noise(size_t count);

}  // namespace zlog::bench
