#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace zlog {

// What many threads wait for: it is opened once. Each thread that wakes up wakes the next one, in
// the order in which they came. Were all woken at once, they would queue up for the lock that each
// needs next, which is Python's, and be woken a second time for that.
class Latch {
 public:
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    wake_next();
  }

  // Waits for at most so long; false when it has not been opened.
  bool wait(double seconds) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (open_) return true;
    Waiter self;
    waiters_.push_back(&self);
    if (self.changed.wait_for(lock, std::chrono::duration<double>(seconds),
                              [&self] { return self.woken; })) {
      wake_next();
    } else {
      waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &self));
    }
    return open_;
  }

 private:
  struct Waiter {
    std::condition_variable changed;
    bool woken = false;
  };

  void wake_next() {
    if (waiters_.empty()) return;
    Waiter* next = waiters_.front();
    waiters_.pop_front();
    next->woken = true;
    next->changed.notify_one();  // under the mutex, as the waiter is gone once it has that
  }

  std::mutex mutex_;
  std::deque<Waiter*> waiters_;
  bool open_ = false;
};

}  // namespace zlog
