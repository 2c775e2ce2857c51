#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "cls_zlog/host/rados/io.h"
#include "cls_zlog/host/rados/librados.h"
#include "cls_zlog/host/timer.h"

namespace zlog {

// Notifies the watchers of objects. An object's first notification is sent at once and is followed
// by a pause. Notifications during the pause are merged into one, which is sent when the pause
// ends. If a notification reached no watcher, the pause is longer, so an object without watchers
// costs at most about one small operation a second.
class RadosNotifier : public std::enable_shared_from_this<RadosNotifier> {
 public:
  explicit RadosNotifier(std::shared_ptr<RadosIo> io) : io_(std::move(io)) {}

  void notify(std::string_view object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return;
    const auto [at, first] = paces_.try_emplace(std::string(object));
    at->second.again = true;
    if (first) send(at->first, &at->second);
  }

  void close() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
      paces_.clear();
    }
    timer_.stop();
  }

 private:
  static constexpr std::chrono::milliseconds kPause{25};   // between two notifications of an object
  static constexpr std::chrono::milliseconds kRest{1000};  // the same if no client watched
  static constexpr int kUnderWayMax = 4;

  // How long an OSD waits for a watcher's reply to a notification. A frozen watcher delays the
  // other watchers by less than this, because several notifications can be in flight at once.
  static constexpr uint64_t kTimeoutMs = 2000;

  // The size of the reply if a notification reached no watcher: the number of watchers that
  // replied, and of those that did not. Each watcher that replied adds at least 24 bytes.
  static constexpr size_t kUnheardBytes = 2 * sizeof(uint32_t);

  struct Pace {
    bool again = false;    // it was notified since the last one was sent
    bool unheard = false;  // no watcher received the last one
    int under_way = 0;
  };

  // Called with the mutex held.
  void send(const std::string& object, Pace* pace) {
    const auto reply = std::make_shared<ClassReply>();
    const int error = io_->try_begin(
        [&](rados_ioctx_t io, rados_completion_t completion) {
          return librados().aio_notify(io, object.c_str(), completion, nullptr, 0, kTimeoutMs,
                                       &reply->bytes, &reply->size);
        },
        [self = shared_from_this(), object, reply](int failed, rados_completion_t) {
          self->answered(object, failed < 0 || reply->size <= kUnheardBytes);
        });
    pace->again = false;
    pace->under_way += error == 0 ? 1 : 0;
    pause(object, kPause);
  }

  void answered(const std::string& object, bool unheard) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = paces_.find(object);
    if (at == paces_.end()) return;  // closed
    at->second.under_way--;
    at->second.unheard = unheard;
  }

  void pause(const std::string& object, std::chrono::milliseconds pause) {
    timer_.after(pause, [self = shared_from_this(), object] { self->go_on(object); });
  }

  void go_on(const std::string& object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = paces_.find(object);
    if (at == paces_.end()) return;  // closed
    Pace& pace = at->second;
    if (pace.under_way >= (pace.again ? kUnderWayMax : 1)) {
      this->pause(object, kPause);
    } else if (std::exchange(pace.unheard, false)) {
      this->pause(object, kRest);
    } else if (pace.again) {
      send(at->first, &pace);
    } else {
      paces_.erase(at);
    }
  }

  const std::shared_ptr<RadosIo> io_;
  std::mutex mutex_;
  bool closed_ = false;
  std::map<std::string, Pace, std::less<>> paces_;
  Timer timer_;
};

}  // namespace zlog
