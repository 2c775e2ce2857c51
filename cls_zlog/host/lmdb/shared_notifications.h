#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "cls_zlog/host/async_host.h"
#include "cls_zlog/host/lmdb/shared_sequencer.h"

namespace zlog {

// Notifications between processes, through the memory that they share with their sequencer. Objects
// that share a slot there are notified together, so a wait may end in vain. A thread attends to
// each object that this process waits for.
class SharedNotifications {
 public:
  explicit SharedNotifications(std::shared_ptr<SharedSequencer> shared);

  // As those of NotificationTable.
  Ticket wait(std::string_view object, uint64_t seen, Done done);
  void notify(std::string_view object);
  void give_up(Ticket ticket);
  void close();

 private:
  struct State;
  static void attend(const std::shared_ptr<State>& state, const std::string& object,
                     uint32_t changes);

  const std::shared_ptr<State> state_;
};

}  // namespace zlog
