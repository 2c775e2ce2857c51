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

struct MemoryObject {
  std::map<std::string, std::string> attrs;
  std::map<std::string, std::string> omap;
  std::string stream;
};

// A host in memory, for tests and simulation. It behaves like an OSD without a disk. Only this
// process uses it, and every operation runs in the caller's thread without waiting.
class MemoryHost final : public AsyncHost {
 public:
  // Runs a method on an object, and returns the code for a Done. Thread-safe. Never throws.
  int execute(std::string_view object, std::string_view method, std::string_view payload,
              std::string* reply);

  Ticket submit(Submission submission) override;
  void list(std::string_view prefix, std::string_view after, Done done) override;
  void notify(std::string_view object) override { notifications_.notify(object); }
  Ticket watch(std::string_view object, uint64_t seen, Done done) override {
    return notifications_.wait(object, seen, std::move(done));
  }
  void give_up(Ticket ticket) override { notifications_.give_up(ticket); }
  void close() override { notifications_.close(); }

  // For tests. peek() copies an object, or returns false if it does not exist; poke() stores one.
  bool peek(const std::string& object, MemoryObject* out);
  void poke(const std::string& object, MemoryObject content);

 private:
  std::mutex mutex_;
  std::map<std::string, MemoryObject, std::less<>> objects_;
  NotificationTable notifications_;
};

}  // namespace zlog
