#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "cls_zlog/host/signal_masked_thread.h"

namespace zlog {

// Calls functions after a delay. All calls are made in one thread, which the first call starts.
class Timer {
 public:
  ~Timer() { stop(); }

  // Calls `due` after `pause`, unless the timer is stopped first.
  void after(std::chrono::microseconds pause, std::function<void()> due) {
    if (pause.count() == 0) {
      due();
      return;
    }
    std::unique_lock<std::mutex> lock(state_->mutex);
    if (state_->stopping) return;
    if (!state_->running) {
      try {
        start_signal_masked_thread([state = state_] { loop(state.get()); }).detach();
      } catch (const std::system_error&) {
        lock.unlock();
        due();  // early: the caller is a thread of librados, which no exception may reach
        return;
      }
    }
    state_->running = true;
    state_->waiting.emplace(Clock::now() + pause, std::move(due));
    state_->changed.notify_one();
  }

  // Drops all calls that are not due yet. A call under way continues.
  void stop() {
    std::multimap<Clock::time_point, std::function<void()>> dropped;  // destroyed without the mutex
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->stopping = true;
    state_->waiting.swap(dropped);
    state_->changed.notify_one();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // The thread shares the state, since it may outlive the timer.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::multimap<Clock::time_point, std::function<void()>> waiting;
    bool running = false;
    bool stopping = false;
  };

  static void loop(State* state) {
    std::unique_lock<std::mutex> lock(state->mutex);
    while (!state->stopping) {
      if (state->waiting.empty()) {
        state->changed.wait(lock);
      } else if (const auto next = state->waiting.begin(); Clock::now() < next->first) {
        const auto until = next->first;
        state->changed.wait_until(lock, until);
      } else {
        const std::function<void()> due = std::move(next->second);
        state->waiting.erase(next);
        lock.unlock();
        due();
        lock.lock();
      }
    }
  }

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace zlog
