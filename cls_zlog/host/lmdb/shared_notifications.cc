#include "cls_zlog/host/lmdb/shared_notifications.h"

#include <cerrno>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/host/notification_table.h"
#include "cls_zlog/host/signal_masked_thread.h"

namespace zlog {
namespace {

// How long a thread goes on when there is no wait, and after how long it looks.
constexpr std::chrono::seconds kIdle{5};
constexpr std::chrono::milliseconds kSlice{250};

}  // namespace

struct SharedNotifications::State {
  explicit State(std::shared_ptr<SharedSequencer> shared) : shared(std::move(shared)) {}

  const std::shared_ptr<SharedSequencer> shared;
  NotificationTable notifications;
  std::mutex mutex;
  std::set<std::string, std::less<>> attended;
  bool closed = false;
};

SharedNotifications::SharedNotifications(std::shared_ptr<SharedSequencer> shared)
    : state_(std::make_shared<State>(std::move(shared))) {}

Ticket SharedNotifications::wait(std::string_view object, uint64_t seen, Done done) {
  State& state = *state_;
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (state.closed) {
    done(-ECANCELED, {});
    return kNoTicket;
  }
  if (state.attended.find(object) == state.attended.end()) {
    const uint32_t changes = state.shared->changes(crc32c(object));
    state.notifications.notify(object);  // perhaps: while it was not attended to
    start_signal_masked_thread([state = state_, object = std::string(object), changes] {
      attend(state, object, changes);
    }).detach();
    state.attended.emplace(object);  // now that its thread runs
  }
  return state.notifications.wait(object, seen, std::move(done));
}

void SharedNotifications::attend(const std::shared_ptr<State>& state, const std::string& object,
                                 uint32_t changes) {
  const uint32_t key = crc32c(object);
  auto awaited = std::chrono::steady_clock::now();
  for (;;) {
    if (state->shared->wait_for_change(key, kSlice, &changes)) state->notifications.notify(object);
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard<std::mutex> lock(state->mutex);
    if (state->notifications.awaited(object)) awaited = now;
    if (!state->closed && now - awaited < kIdle) continue;
    state->attended.erase(object);
    return;
  }
}

void SharedNotifications::notify(std::string_view object) {
  state_->shared->announce(crc32c(object));
}

void SharedNotifications::give_up(Ticket ticket) { state_->notifications.give_up(ticket); }

void SharedNotifications::close() {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->closed = true;
  }
  state_->notifications.close();
}

}  // namespace zlog
