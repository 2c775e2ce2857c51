#include "sample.h"

#include <condition_variable>
#include <mutex>
#include <random>
#include <system_error>
#include <utility>

namespace zlog::bench {
namespace {

// Calls that have ended and were not counted yet.
class Ended {
 public:
  struct Call {
    uint64_t lane;
    int error;
    Clock::time_point at;
  };

  void push(uint64_t lane, int error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_.push_back({lane, error, Clock::now()});
    if (calls_.size() == 1) some_.notify_one();
  }

  // Waits until some calls have ended, and takes all of them.
  std::vector<Call> take() {
    std::unique_lock<std::mutex> lock(mutex_);
    some_.wait(lock, [this] { return !calls_.empty(); });
    return std::exchange(calls_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable some_;
  std::vector<Call> calls_;
};

}  // namespace

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

Sample repeat(uint64_t in_flight, double seconds, const Start& start) {
  Ended ended;
  Sample sample;
  std::vector<Clock::time_point> started(in_flight);
  uint64_t outstanding = 0;
  int failed = 0;
  const auto begin = [&](uint64_t lane) {
    started[lane] = Clock::now();
    outstanding += start([&ended, lane](int error) { ended.push(lane, error); }) ? 1 : 0;
  };
  const Clock::time_point began = Clock::now();
  for (uint64_t lane = 0; lane < in_flight; lane++) begin(lane);
  while (outstanding != 0) {
    for (const Ended::Call& call : ended.take()) {
      outstanding--;
      failed = failed != 0 ? failed : call.error;
      const std::chrono::duration<float> took = call.at - started[call.lane];
      sample.latencies.push_back(took.count());
      if (failed == 0 && seconds_since(began) < seconds) begin(call.lane);
    }
  }
  sample.seconds = seconds_since(began);
  check(failed, "a call");
  return sample;
}

Sample repeat_alone(double seconds, const std::function<bool()>& call) {
  Sample sample;
  const Clock::time_point began = Clock::now();
  do {
    const Clock::time_point now = Clock::now();
    if (!call()) break;
    sample.latencies.push_back(static_cast<float>(seconds_since(now)));
  } while (seconds_since(began) < seconds);
  sample.seconds = seconds_since(began);
  return sample;
}

void check(int error, const std::string& what) {
  if (error < 0) throw std::system_error(-error, std::generic_category(), what);
}

std::string noise(size_t count) {
  std::mt19937_64 random(1);
  std::string bytes;
  bytes.reserve(count + 8);
  while (bytes.size() < count) {
    const uint64_t word = random();
    bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  bytes.resize(count);
  return bytes;
}

}  // namespace zlog::bench
