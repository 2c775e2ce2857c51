#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "cls_zlog/host/rados/calls.h"
#include "cls_zlog/host/rados/librados.h"
#include "cls_zlog/host/timer.h"

namespace zlog {

// Notifies the watchers of objects, of each object at a bounded rate: the first time at once, and
// then for all that came meanwhile together. The answer to a notification says whether it reached a
// watcher. Where it did not, the next one waits for long, so an object without watchers costs about
// one small operation a second, and none while it is not notified.
//
// Life of an object's pace: none → sent → paused (→ resting, unheard) → sent again, or none.
class RadosNotifier : public std::enable_shared_from_this<RadosNotifier> {
 public:
  // `io` is valid until close().
  RadosNotifier(rados_ioctx_t io, std::shared_ptr<RadosCalls> outstanding)
      : io_(io), outstanding_(std::move(outstanding)) {}

  void notify(std::string_view object);
  void close();

 private:
  struct Pace {
    bool again = false;    // it was notified since the last one was sent
    bool unheard = false;  // no watcher answered the last one that is over
    int under_way = 0;
  };
  void send(const std::string& object, Pace* pace);
  void answered(const std::string& object, int error, const Buffer& reply);
  void pause(const std::string& object, std::chrono::milliseconds pause);
  void go_on(const std::string& object);

  void* const io_;  // rados_ioctx_t
  const std::shared_ptr<RadosCalls> outstanding_;
  std::mutex mutex_;
  bool closed_ = false;
  std::map<std::string, Pace, std::less<>> paces_;
  Timer timer_;
};

}  // namespace zlog
