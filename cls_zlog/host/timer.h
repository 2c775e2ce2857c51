#pragma once

#include <chrono>
#include <functional>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace zlog {

// A thread that calls what is due, once there is something to call.
class Alarm {
 public:
  Alarm() = default;
  ~Alarm() { stop(); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Calls `due` after so long; never, if it is stopped before.
  void after(std::chrono::microseconds pause, std::function<void()> due);

  // Drops what is not due yet. What is just being called goes on.
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
