#include "cls_zlog/host/notification_table.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cls_zlog/wire/wire.h"

namespace zlog {

Buffer number_reply(uint64_t number) {
  std::string bytes;
  wire::Writer(&bytes).u64(number);
  return Buffer::of(std::move(bytes));
}

Ticket NotificationTable::wait(std::string_view object, uint64_t seen, Done done) {
  std::unique_lock<std::mutex> lock(mutex_);
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

uint64_t NotificationTable::number(std::string_view object) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return find(object).number;
}

bool NotificationTable::awaited(std::string_view object) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = objects_.find(object);
  return at != objects_.end() && !at->second.waits.empty();
}

void NotificationTable::notify(std::string_view object) {
  std::vector<Wait> over;
  uint64_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = objects_.find(object);
    if (at == objects_.end()) return;  // no number was ever told
    at->second.number = number = ++last_number_;
    over.swap(at->second.waits);
  }
  for (const Wait& each : over) each.done(0, number_reply(number));
}

void NotificationTable::fail(std::string_view object, int error) {
  std::vector<Wait> over;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = objects_.find(object);
    if (at == objects_.end()) return;
    over.swap(at->second.waits);
    objects_.erase(at);
  }
  for (const Wait& each : over) each.done(error, {});
}

void NotificationTable::give_up(Ticket ticket) {
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

void NotificationTable::close() {
  std::map<std::string, Object, std::less<>> objects;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    objects.swap(objects_);
  }
  for (const auto& [name, object] : objects) {
    for (const Wait& each : object.waits) each.done(-ECANCELED, {});
  }
}

NotificationTable::Object& NotificationTable::find(std::string_view object) {
  const auto at = objects_.find(object);
  if (at != objects_.end()) return at->second;
  return objects_.emplace(std::string(object), Object{++last_number_, {}}).first->second;
}

}  // namespace zlog
