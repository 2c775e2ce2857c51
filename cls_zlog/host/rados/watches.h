#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "cls_zlog/host/notification_table.h"
#include "cls_zlog/host/rados/calls.h"
#include "cls_zlog/host/rados/librados.h"

namespace zlog {

// Watches objects on behalf of the waits for their notifications. The object is made, empty, where
// there is none. A watch serves all waits of this process. It stays for the next one, and ends with
// the first notification after a while without any.
//
// Life of a watch: starting → there → lost (the OSD has dropped it: its waits fail, and the next
// one begins anew), or ended.
class RadosWatches : public std::enable_shared_from_this<RadosWatches> {
 public:
  // `io` is valid until close(), and until all calls that were outstanding then are over.
  RadosWatches(rados_ioctx_t io, std::shared_ptr<RadosCalls> outstanding)
      : io_(io), outstanding_(std::move(outstanding)) {}

  // As of NotificationTable. Fails as the watch does: EPERM where the client's caps do not allow it, ENOTCONN
  // when it was lost.
  Ticket wait(std::string_view object, uint64_t seen, Done done);
  void give_up(Ticket ticket) { notifications_.give_up(ticket); }
  void close();

 private:
  struct Watch {
    uint64_t number = 0;  // tells it from others, before it and after
    uint64_t cookie = 0;
    bool there = false;
    bool lost = false;         // before it was there
    bool object_made = false;  // the object was not there
    std::chrono::steady_clock::time_point awaited;
  };
  using Watches = std::map<std::string, Watch, std::less<>>;

  int start(const std::string& object, uint64_t number);
  int make_object(const std::string& object, uint64_t number);
  void started(const std::string& object, uint64_t number, uint64_t cookie, int error);
  void notified(const std::string& object, uint64_t number, uint64_t notify_id, uint64_t cookie);
  void lost(const std::string& object, uint64_t number, uint64_t cookie);
  Watches::iterator find(const std::string& object, uint64_t number);
  void end(uint64_t cookie);

  static void on_notify(void* argument, uint64_t notify_id, uint64_t cookie, uint64_t notifier,
                        void* data, size_t size);
  static void on_error(void* argument, uint64_t cookie, int error);

  void* const io_;  // rados_ioctx_t
  const std::shared_ptr<RadosCalls> outstanding_;
  NotificationTable notifications_;
  std::mutex mutex_;
  bool closed_ = false;
  Watches watches_;
};

}  // namespace zlog
