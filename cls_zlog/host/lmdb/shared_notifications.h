#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/host/lmdb/shared_sequencer.h"
#include "cls_zlog/host/notification_table.h"
#include "cls_zlog/host/signal_masked_thread.h"

namespace zlog {

// Passes notifications between processes through their shared sequencer's memory. Several objects
// share a counter there and are notified together, so a wait may end although its object did not
// change. For each awaited object, a thread waits for the counter; the thread may outlive the host.
// NotificationTable describes the calls.
class SharedNotifications : public std::enable_shared_from_this<SharedNotifications> {
 public:
  explicit SharedNotifications(std::shared_ptr<SharedSequencer> shared)
      : shared_(std::move(shared)) {}

  Ticket wait(std::string_view object, uint64_t seen, Done done) {
    // The thread must not end before the wait begins.
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!closed_ && attended_.find(object) == attended_.end()) {
      const uint32_t changes = shared_->changes(crc32c(object));
      table_.notify(object);  // it may have been notified while no thread attended to it
      start_signal_masked_thread([self = shared_from_this(), object = std::string(object),
                                  changes] {
        self->attend(object, changes);
      }).detach();
      attended_.emplace(object);  // now that its thread runs
    }
    return table_.wait(object, seen, std::move(done));
  }

  void notify(std::string_view object) { shared_->announce(crc32c(object)); }

  void give_up(Ticket ticket) { table_.give_up(ticket); }

  void close() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
    }
    table_.close();
  }

 private:
  static constexpr std::chrono::seconds kIdle{5};          // how long a thread stays without a wait
  static constexpr std::chrono::milliseconds kSlice{250};  // how often it looks for waits

  void attend(const std::string& object, uint32_t changes) {
    using Clock = std::chrono::steady_clock;
    const uint32_t key = crc32c(object);
    auto awaited = Clock::now();
    for (;;) {
      if (shared_->wait_for_change(key, kSlice, &changes)) table_.notify(object);
      const std::lock_guard<std::mutex> lock(mutex_);
      if (table_.awaited(object)) awaited = Clock::now();
      if (!closed_ && Clock::now() - awaited < kIdle) continue;
      attended_.erase(object);
      return;
    }
  }

  const std::shared_ptr<SharedSequencer> shared_;
  NotificationTable table_;
  std::mutex mutex_;
  std::set<std::string, std::less<>> attended_;
  bool closed_ = false;
};

}  // namespace zlog
