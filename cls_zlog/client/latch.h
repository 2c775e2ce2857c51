#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <deque>
#include <mutex>

namespace zlog {

// A latch that opens once. It wakes one waiting thread, and each thread that has waited wakes the
// next one, by pass_on(), once it has Python's GIL. If they woke earlier, they would only wait
// again, for the GIL. Each thread waits for a futex of its own, because a condition variable would
// make it wait for the mutex of the thread that wakes it.
class Latch {
 public:
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    wake_next();
  }

  // Waits for up to `seconds`, or until a signal arrives. Returns false if the latch is still
  // closed.
  bool wait(double seconds) {
    Waiter woken = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (open_) return true;
      waiters_.push_back(&woken);
    }
    const auto whole = static_cast<time_t>(seconds);
    const timespec limit = {whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
    while (woken == 0) {
      const long r = syscall(SYS_futex, &woken, FUTEX_WAIT_PRIVATE, 0, &limit, nullptr, 0);
      if (r != 0 && errno != EAGAIN) break;
    }
    if (woken != 0) return true;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = std::find(waiters_.begin(), waiters_.end(), &woken);
    if (at == waiters_.end()) return true;  // woken at the last moment
    waiters_.erase(at);
    return open_;
  }

  void pass_on() {
    const std::lock_guard<std::mutex> lock(mutex_);
    wake_next();
  }

 private:
  using Waiter = std::atomic<uint32_t>;

  void wake_next() {
    if (waiters_.empty()) return;
    Waiter* const next = waiters_.front();
    waiters_.pop_front();
    *next = 1;
    // If the thread has already seen the value, it may be gone, and this call has no effect.
    syscall(SYS_futex, next, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

  std::mutex mutex_;
  std::deque<Waiter*> waiters_;
  bool open_ = false;
};

}  // namespace zlog
