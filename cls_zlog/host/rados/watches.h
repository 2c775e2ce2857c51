#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "cls_zlog/host/notification_table.h"
#include "cls_zlog/host/rados/io.h"
#include "cls_zlog/host/rados/librados.h"

namespace zlog {

class RadosWatches;

// The owners of watches, by the watches' numbers. librados passes a number to its callbacks instead
// of a pointer, because a callback may arrive after the watch has ended.
class WatchOwners {
 public:
  struct Owner {
    std::weak_ptr<RadosWatches> watches;
    std::string object;
  };

  // Never destroyed: librados' threads may outlive the program's static objects.
  static WatchOwners& instance() {
    static auto* const all = new WatchOwners();
    return *all;
  }

  uint64_t add(Owner owner) {
    const std::lock_guard<std::mutex> lock(mutex_);
    owners_.emplace(++last_, std::move(owner));
    return last_;
  }
  Owner find(uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = owners_.find(number);
    return at == owners_.end() ? Owner() : at->second;
  }
  void remove(uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    owners_.erase(number);
  }

 private:
  std::mutex mutex_;
  uint64_t last_ = 0;
  std::unordered_map<uint64_t, Owner> owners_;
};

// Watches objects to receive their notifications. Missing objects are created empty. One watch per
// object serves all waits of this process. If there are no waits for some time (kIdle), the next
// notification ends the watch. If the OSD drops a watch, its waits fail, and the next one renews
// it.
class RadosWatches : public std::enable_shared_from_this<RadosWatches> {
 public:
  explicit RadosWatches(std::shared_ptr<RadosIo> io) : io_(std::move(io)) {}

  // Waits as in NotificationTable. Fails with EPERM if the client's caps do not allow it to watch
  // the object, and with ENOTCONN if the watch was lost.
  Ticket wait(std::string_view object, uint64_t seen, Done done) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (closed_) {
      lock.unlock();
      return refuse(done, -ECANCELED);
    }
    const auto [at, fresh] = watches_.try_emplace(std::string(object));
    const std::string& name = at->first;
    at->second.awaited = std::chrono::steady_clock::now();
    if (at->second.active) return notifications_.wait(name, seen, std::move(done));
    // The start of the watch counts as the first notification.
    const Ticket ticket = notifications_.wait(name, notifications_.number(name), std::move(done));
    if (!fresh) return ticket;
    const uint64_t number = WatchOwners::instance().add({weak_from_this(), name});
    at->second.number = number;
    const int error = start(name, number);
    lock.unlock();
    if (error != 0) started(std::string(object), number, 0, error);
    return ticket;
  }

  void give_up(Ticket ticket) { notifications_.give_up(ticket); }

  void close() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
      while (!watches_.empty()) drop(watches_.begin());
    }
    notifications_.close();
  }

 private:
  // An OSD drops a watch whose client is silent for this time. A notification waits for all
  // watches, so this is also how long a frozen client can delay it.
  static constexpr uint32_t kTimeoutSeconds = 15;

  // How long a watch stays active without waits. A follower waits again and again.
  static constexpr std::chrono::seconds kIdle{30};

  struct Watch {
    uint64_t number = 0;  // tells it from earlier and later watches of the object
    uint64_t cookie = 0;
    bool active = false;
    bool lost = false;            // before it was active
    bool object_created = false;  // the object was missing
    std::chrono::steady_clock::time_point awaited;
  };
  using Watches = std::map<std::string, Watch, std::less<>>;

  // Called with the mutex.
  int start(const std::string& object, uint64_t number) {
    const auto cookie = std::make_shared<uint64_t>(0);
    void* const argument =
        reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr): never dereferenced
    return io_->try_begin(
        [&](rados_ioctx_t io, rados_completion_t completion) {
          return librados().aio_watch2(io, object.c_str(), completion, cookie.get(), &on_notify,
                                       &on_error, kTimeoutSeconds, argument);
        },
        [self = shared_from_this(), object, number, cookie](int failed, rados_completion_t) {
          self->started(object, number, *cookie, failed);
        });
  }

  // Called with the mutex held. Creates the object and starts the watch again.
  int create_object(const std::string& object, uint64_t number) {
    const auto operation = new_write_op();
    librados().write_op_create(operation.get(), 0, nullptr);
    return io_->try_begin(
        [&](rados_ioctx_t io, rados_completion_t completion) {
          return librados().aio_write_op_operate(operation.get(), io, completion, object.c_str(),
                                                 nullptr, 0);
        },
        [self = shared_from_this(), object, number](int failed, rados_completion_t) {
          if (failed == 0) {
            const std::lock_guard<std::mutex> lock(self->mutex_);
            failed = self->closed_ ? -ECANCELED : self->start(object, number);
          }
          if (failed != 0) self->started(object, number, 0, failed);
        });
  }

  void started(const std::string& object, uint64_t number, uint64_t cookie, int error) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto at = find(object, number);
      if (at == watches_.end()) {  // closed
        if (error == 0) end(cookie);
        return;
      }
      if (error == -ENOENT && !std::exchange(at->second.object_created, true)) {
        error = create_object(object, number);
        if (error == 0) return;
      }
      at->second.cookie = cookie;
      at->second.active = error == 0;
      if (error == 0 && at->second.lost) error = -ENOTCONN;
      if (error != 0) drop(at);
    }
    if (error == 0) {
      notifications_.notify(object);
    } else {
      notifications_.fail(object, error);
    }
  }

  void notified(const std::string& object, uint64_t number, uint64_t notify_id, uint64_t cookie) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (closed_) return;
      librados().notify_ack(io_->io(), object.c_str(), notify_id, cookie, nullptr, 0);
      const auto at = find(object, number);
      if (at == watches_.end() || !at->second.active) return;
      const auto idle = std::chrono::steady_clock::now() - at->second.awaited;
      if (!notifications_.awaited(object) && idle > kIdle) drop(at);
    }
    notifications_.notify(object);
  }

  void lost(const std::string& object, uint64_t number) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto at = find(object, number);
      if (at == watches_.end()) return;
      if (!at->second.active) {
        at->second.lost = true;  // started() ends it: a cookie can be used for one end only
        return;
      }
      drop(at);
    }
    notifications_.fail(object, -ENOTCONN);
  }

  Watches::iterator find(const std::string& object, uint64_t number) {
    const auto at = watches_.find(object);
    return at == watches_.end() || at->second.number == number ? at : watches_.end();
  }

  // Called with the mutex.
  void drop(Watches::iterator at) {
    WatchOwners::instance().remove(at->second.number);
    if (at->second.active) end(at->second.cookie);
    watches_.erase(at);
  }

  // Called with the mutex held, or by a call that is outstanding.
  void end(uint64_t cookie) {
    io_->try_begin(
        [&](rados_ioctx_t io, rados_completion_t completion) {
          return librados().aio_unwatch(io, cookie, completion);
        },
        [](int, rados_completion_t) {});
  }

  // These two are called on a thread of librados.
  static void on_notify(void* argument, uint64_t notify_id, uint64_t cookie, uint64_t /*notifier*/,
                        void* /*data*/, size_t /*size*/) {
    const auto number = reinterpret_cast<uint64_t>(argument);
    const WatchOwners::Owner owner = WatchOwners::instance().find(number);
    if (const auto watches = owner.watches.lock()) {
      watches->notified(owner.object, number, notify_id, cookie);
    }
  }

  static void on_error(void* argument, uint64_t /*cookie*/, int /*error*/) {
    const auto number = reinterpret_cast<uint64_t>(argument);
    const WatchOwners::Owner owner = WatchOwners::instance().find(number);
    if (const auto watches = owner.watches.lock()) watches->lost(owner.object, number);
  }

  const std::shared_ptr<RadosIo> io_;
  NotificationTable notifications_;
  std::mutex mutex_;
  bool closed_ = false;
  Watches watches_;
};

}  // namespace zlog
