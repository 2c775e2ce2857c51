#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/host/async_host.h"

namespace zlog {

// What a wait for a notification is answered with: the object's number, 8 bytes, little-endian.
Buffer number_reply(uint64_t number);

// The waits of this process for notifications of objects. An object has a number, above 0, and each
// notification gives it a new one: so none is missed that comes before the next wait.
class NotificationTable {
 public:
  // Calls `done` with OK and the object's number once that is not `seen`, which may be at once.
  Ticket wait(std::string_view object, uint64_t seen, Done done);

  uint64_t number(std::string_view object);
  bool awaited(std::string_view object);
  void notify(std::string_view object);

  // Answers all waits for an object with an error, and forgets its number.
  void fail(std::string_view object, int error);
  void give_up(Ticket ticket);
  void close();

 private:
  struct Wait {
    Ticket ticket;
    Done done;
  };
  struct Object {
    uint64_t number;
    std::vector<Wait> waits;
  };
  Object& find(std::string_view object);

  std::mutex mutex_;
  Ticket last_ticket_ = kNoTicket;
  uint64_t last_number_ = 0;
  std::map<std::string, Object, std::less<>> objects_;
};

}  // namespace zlog
