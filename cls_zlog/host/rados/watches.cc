#include "cls_zlog/host/rados/watches.h"

#include <cerrno>
#include <unordered_map>
#include <utility>

namespace zlog {
namespace {

// Without a sign of life for so long, an OSD drops a watch. Notifications wait for those that it
// has: a frozen client holds them up for no longer.
constexpr uint32_t kTimeoutSeconds = 15;

// How long a watch is kept without a wait for it. A follower waits again and again.
constexpr std::chrono::seconds kIdle{30};

// Whose a watch is. librados' callbacks carry its number, and no pointer: they may come when it is
// gone.
struct Owner {
  std::weak_ptr<RadosWatches> watches;
  std::string object;
};

class Owners {
 public:
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

// Never destroyed: librados' threads may outlive what the program's end destroys.
Owners& owners() {
  static auto* const all = new Owners();
  return *all;
}

void* as_argument(uint64_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT(performance-no-int-to-ptr): never dereferenced
}
uint64_t number_of(void* argument) { return reinterpret_cast<uint64_t>(argument); }

}  // namespace

Ticket RadosWatches::wait(std::string_view object, uint64_t seen, Done done) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (closed_) {
    lock.unlock();
    done(-ECANCELED, {});
    return kNoTicket;
  }
  const auto [at, fresh] = watches_.try_emplace(std::string(object));
  const std::string& name = at->first;
  at->second.awaited = std::chrono::steady_clock::now();
  if (at->second.there) return notifications_.wait(name, seen, std::move(done));
  // Its being there is the first notification.
  const Ticket ticket = notifications_.wait(name, notifications_.number(name), std::move(done));
  if (!fresh) return ticket;
  const uint64_t number = owners().add({weak_from_this(), name});
  at->second.number = number;
  const int error = start(name, number);
  lock.unlock();
  if (error != 0) started(std::string(object), number, 0, error);
  return ticket;
}

void RadosWatches::close() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    for (const auto& [object, watch] : watches_) {
      owners().remove(watch.number);
      if (watch.there) end(watch.cookie);
    }
    watches_.clear();
  }
  notifications_.close();
}

// With the mutex.
int RadosWatches::start(const std::string& object, uint64_t number) {
  const auto cookie = std::make_shared<uint64_t>(0);
  int error = 0;
  begin_call(
      outstanding_,
      [&](rados_completion_t completion) {
        return librados().aio_watch2(io_, object.c_str(), completion, cookie.get(), &on_notify,
                                     &on_error, kTimeoutSeconds, as_argument(number));
      },
      [self = shared_from_this(), object, number, cookie](int failed, rados_completion_t) {
        self->started(object, number, *cookie, failed);
      },
      &error);
  return error;
}

// With the mutex: makes the object, and starts again.
int RadosWatches::make_object(const std::string& object, uint64_t number) {
  const auto operation = new_write_op();
  librados().write_op_create(operation.get(), 0, nullptr);
  int error = 0;
  begin_call(
      outstanding_,
      [&](rados_completion_t completion) {
        return librados().aio_write_op_operate(operation.get(), io_, completion, object.c_str(),
                                               nullptr, 0);
      },
      [self = shared_from_this(), object, number](int failed, rados_completion_t) {
        if (failed == 0) {
          const std::lock_guard<std::mutex> lock(self->mutex_);
          failed = self->closed_ ? -ECANCELED : self->start(object, number);
        }
        if (failed != 0) self->started(object, number, 0, failed);
      },
      &error);
  return error;
}

void RadosWatches::started(const std::string& object, uint64_t number, uint64_t cookie, int error) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = find(object, number);
    if (at == watches_.end()) {  // closed
      if (error == 0) end(cookie);
      return;
    }
    if (error == -ENOENT && !std::exchange(at->second.object_made, true)) {
      error = make_object(object, number);
      if (error == 0) return;
    }
    if (error == 0 && at->second.lost) {
      end(cookie);
      error = -ENOTCONN;
    }
    at->second.cookie = cookie;
    at->second.there = error == 0;
    if (error != 0) {
      owners().remove(number);
      watches_.erase(at);
    }
  }
  if (error == 0) {
    notifications_.notify(object);
  } else {
    notifications_.fail(object, error);
  }
}

void RadosWatches::notified(const std::string& object, uint64_t number, uint64_t notify_id,
                            uint64_t cookie) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return;
    librados().notify_ack(io_, object.c_str(), notify_id, cookie, nullptr, 0);
    const auto at = find(object, number);
    if (at == watches_.end() || !at->second.there) return;
    if (!notifications_.awaited(object) &&
        std::chrono::steady_clock::now() - at->second.awaited > kIdle) {
      owners().remove(number);
      watches_.erase(at);
      end(cookie);
    }
  }
  notifications_.notify(object);
}

void RadosWatches::lost(const std::string& object, uint64_t number, uint64_t cookie) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = find(object, number);
    if (at == watches_.end()) return;
    if (!at->second.there) {
      at->second.lost = true;  // started() ends it: a cookie is good for one end only
      return;
    }
    owners().remove(number);
    watches_.erase(at);
    end(cookie);
  }
  notifications_.fail(object, -ENOTCONN);
}

RadosWatches::Watches::iterator RadosWatches::find(const std::string& object, uint64_t number) {
  const auto at = watches_.find(object);
  return at == watches_.end() || at->second.number == number ? at : watches_.end();
}

// With the mutex, or in a call that is outstanding.
void RadosWatches::end(uint64_t cookie) {
  int error = 0;
  begin_call(
      outstanding_,
      [&](rados_completion_t completion) {
        return librados().aio_unwatch(io_, cookie, completion);
      },
      [](int, rados_completion_t) {}, &error);
}

// On a thread of librados, as the next one.
void RadosWatches::on_notify(void* argument, uint64_t notify_id, uint64_t cookie,
                             uint64_t /*notifier*/, void* /*data*/, size_t /*size*/) {
  const Owner owner = owners().find(number_of(argument));
  if (const auto watches = owner.watches.lock()) {
    watches->notified(owner.object, number_of(argument), notify_id, cookie);
  }
}

void RadosWatches::on_error(void* argument, uint64_t cookie, int /*error*/) {
  const Owner owner = owners().find(number_of(argument));
  if (const auto watches = owner.watches.lock()) {
    watches->lost(owner.object, number_of(argument), cookie);
  }
}

}  // namespace zlog
