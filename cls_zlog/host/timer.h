#pragma once

#include <chrono>
#include <functional>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace zlog {

// Calls functions after a delay, in one thread that starts with the first of them.
class Timer {
 public:
  Timer() = default;
  ~Timer() { stop(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Calls `due` after `pause`; never if the timer is stopped before.
  void after(std::chrono::microseconds pause, std::function<void()> due);

  // Drops what is not due yet. A call under way continues.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::multimap<Clock::time_point, std::function<void()>> waiting;
    bool running = false;
    bool stopping = false;
  };
  static void loop(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace zlog
