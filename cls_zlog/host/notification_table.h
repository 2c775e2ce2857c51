#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cls_zlog/base/little_endian.h"
#include "cls_zlog/host/async_host.h"

namespace zlog {

// The reply to a wait for a notification: the object's number, 8 bytes, little-endian.
inline Buffer number_reply(uint64_t number) {
  std::string bytes;
  wire::append(&bytes, number);
  return Buffer::of(std::move(bytes));
}

// Lets this process wait for notifications of objects. Each object has a number above 0, and each
// notification changes it. A client that passes the last number it saw misses no notification.
class NotificationTable {
 public:
  // Calls `done` with the object's number once that differs from `seen`, which may be at once.
  Ticket wait(std::string_view object, uint64_t seen, Done done) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (closed_) {
      lock.unlock();
      return refuse(done, -ECANCELED);
    }
    Object& found = find(object);
    const uint64_t number = found.number;
    if (number == seen) {
      found.waits.push_back({++last_ticket_, std::move(done)});
      return last_ticket_;
    }
    lock.unlock();
    done(0, number_reply(number));
    return kNoTicket;
  }

  uint64_t number(std::string_view object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return find(object).number;
  }

  bool awaited(std::string_view object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = objects_.find(object);
    return at != objects_.end() && !at->second.waits.empty();
  }

  void notify(std::string_view object) {
    std::vector<Wait> over;
    uint64_t number = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto at = objects_.find(object);
      if (at == objects_.end()) return;  // its number was never returned
      at->second.number = number = ++last_number_;
      over.swap(at->second.waits);
    }
    for (const Wait& each : over) each.done(0, number_reply(number));
  }

  // Ends all waits for an object with an error, and forgets its number.
  void fail(std::string_view object, int error) {
    Objects over;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (const auto at = objects_.find(object); at != objects_.end())
        over.insert(objects_.extract(at));
    }
    end(over, error);
  }

  void give_up(Ticket ticket) {
    Done done;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (auto& [name, object] : objects_) {
        const auto at = std::find_if(object.waits.begin(), object.waits.end(),
                                     [&](const Wait& each) { return each.ticket == ticket; });
        if (at == object.waits.end()) continue;
        done = std::move(at->done);
        object.waits.erase(at);
        break;
      }
    }
    if (done) done(-ECANCELED, {});
  }

  // Ends all waits, including later ones, with ECANCELED.
  void close() {
    Objects over;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
      over.swap(objects_);
    }
    end(over, -ECANCELED);
  }

 private:
  struct Wait {
    Ticket ticket;
    Done done;
  };
  struct Object {
    uint64_t number;
    std::vector<Wait> waits;
  };
  using Objects = std::map<std::string, Object, std::less<>>;

  static void end(const Objects& objects, int error) {
    for (const auto& [name, object] : objects) {
      for (const Wait& each : object.waits) each.done(error, {});
    }
  }

  Object& find(std::string_view object) {
    const auto at = objects_.find(object);
    if (at != objects_.end()) return at->second;
    return objects_.emplace(std::string(object), Object{++last_number_, {}}).first->second;
  }

  std::mutex mutex_;
  bool closed_ = false;
  Ticket last_ticket_ = kNoTicket;
  uint64_t last_number_ = 0;
  Objects objects_;
};

}  // namespace zlog
