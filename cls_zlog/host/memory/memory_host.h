#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "cls_zlog/host/async_host.h"
#include "cls_zlog/host/notification_table.h"

namespace zlog {

// An object held in memory: existing or not, a bytestream, attributes, sorted keys.
struct MemoryObject {
  std::map<std::string, std::string> attrs;
  std::map<std::string, std::string> omap;
  std::string stream;
};

// A host in memory, for tests and simulation: what an OSD answers, without a disk. Nothing survives
// it. It never waits: everything happens in the caller's thread. Only this process uses it.
class MemoryHost final : public AsyncHost {
 public:
  // Runs a method on an object as one atomic, isolated step. Answers a negative errno (EOPNOTSUPP:
  // no such method; EINVAL: an object without a name; ENOENT: no such object; nothing was applied)
  // or the method's Code, with its reply in `reply`. Thread-safe; never throws.
  int execute(std::string_view object, std::string_view method, std::string_view payload,
              std::string* reply);

  Ticket submit(std::string_view object, std::string_view method, SharedRequest payload,
                Done done) override;
  void list(std::string_view prefix, std::string_view after, Done done) override;
  void notify(std::string_view object) override { notifications_.notify(object); }
  Ticket watch(std::string_view object, uint64_t seen, Done done) override {
    return notifications_.wait(object, seen, std::move(done));
  }
  void give_up(Ticket ticket) override { notifications_.give_up(ticket); }
  void close() override { notifications_.close(); }

  // For tests: copies an object out (false: there is none) or puts one in, damaged as the test
  // likes.
  bool peek(const std::string& object, MemoryObject* out);
  void poke(const std::string& object, MemoryObject content);

 private:
  std::mutex mutex_;
  std::map<std::string, MemoryObject, std::less<>> objects_;
  NotificationTable notifications_;
};

}  // namespace zlog
