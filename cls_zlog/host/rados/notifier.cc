#include "cls_zlog/host/rados/notifier.h"

#include <utility>

namespace zlog {
namespace {

constexpr std::chrono::milliseconds kPause{25};   // between two notifications of an object
constexpr std::chrono::milliseconds kRest{1000};  // the same where no client watched
constexpr int kUnderWayMax = 4;

// How long an OSD waits for a watcher's answer. One that is frozen holds up the notifications of
// others less than that: some are under way at a time.
constexpr uint64_t kTimeoutMs = 2000;

// Whether a watcher has answered, or failed to: the reply begins with how many did, and has 24 bytes
// and its reply's length for each; then with how many did not.
bool was_heard(std::string_view reply) {
  constexpr size_t kNoneBytes = 2 * sizeof(uint32_t);
  return reply.size() > kNoneBytes;
}

}  // namespace

void RadosNotifier::notify(std::string_view object) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return;
  const auto at = paces_.find(object);
  if (at != paces_.end()) {
    at->second.again = true;
    return;
  }
  const auto made = paces_.emplace(std::string(object), Pace()).first;
  send(made->first, &made->second);
}

void RadosNotifier::close() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    paces_.clear();
  }
  timer_.stop();
}

// With the mutex.
void RadosNotifier::send(const std::string& object, Pace* pace) {
  const auto reply = std::make_shared<ClassReply>();
  const auto start = [&](rados_completion_t completion) {
    return librados().aio_notify(io_, object.c_str(), completion, nullptr, 0, kTimeoutMs,
                                 &reply->bytes, &reply->size);
  };
  int error = 0;
  begin_call(
      outstanding_, start,
      [self = shared_from_this(), object, reply](int failed, rados_completion_t) {
        self->answered(object, failed, reply->take());
      },
      &error);
  pace->again = false;
  pace->under_way += error == 0 ? 1 : 0;
  pause(object, kPause);
}

void RadosNotifier::answered(const std::string& object, int error, const Buffer& reply) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = paces_.find(object);
  if (at == paces_.end()) return;  // closed
  at->second.under_way--;
  at->second.unheard = error < 0 || !was_heard(reply.bytes);
}

void RadosNotifier::pause(const std::string& object, std::chrono::milliseconds pause) {
  timer_.after(pause, [self = shared_from_this(), object] { self->go_on(object); });
}

void RadosNotifier::go_on(const std::string& object) {
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

}  // namespace zlog
