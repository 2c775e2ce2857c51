#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace zlog {

// A latch that opens once. Each waiting thread wakes the next one. If all woke at once, they would
// only block one another again on Python's GIL.
class Latch {
 public:
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    wake_next();
  }

  // Waits for up to `seconds`. Returns false if the latch is still closed.
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
    next->changed.notify_one();  // under the mutex: the waiter may end once it has the mutex
  }

  std::mutex mutex_;
  std::deque<Waiter*> waiters_;
  bool open_ = false;
};

}  // namespace zlog
