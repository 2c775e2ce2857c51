#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace zlog {

constexpr size_t kIncarnationBytes = 16;

// A sequencer that several processes share through memory: what makes a daemon needless on one
// machine.
//
// It is a hint, as CORFU's sequencer is: positions are granted under an epoch, and the epoch kept
// in the stripe objects decides. Losing its memory (a reboot, a deleted file, a process killed
// while it held a lock) therefore costs an activation with a higher epoch and nothing else.
//
// Life of a log's slot: free → active at an epoch, with a tail (activate) → active at a higher
// epoch … → broken (a process died while it changed the slot; the next activation mends it) → free
// (release).
class SharedSequencer {
 public:
  // Maps the file `directory`/sequencer, and makes it anew if it is missing, of another version or
  // from before a reboot. Returns 0 or a negative errno.
  static int open(const std::string& directory, std::shared_ptr<SharedSequencer>* sequencer);

  // A sequencer in anonymous memory, for this process and its children.
  static int open_anonymous(std::shared_ptr<SharedSequencer>* sequencer);

  ~SharedSequencer();
  SharedSequencer(const SharedSequencer&) = delete;
  SharedSequencer& operator=(const SharedSequencer&) = delete;

  // All calls return 0 or a negative errno: ESTALE says that the log is not active at that epoch,
  // ETIMEDOUT that a stopped process holds the slot.

  // Lets the log's positions from `tail` on be granted under `epoch`. ESTALE unless the epoch is
  // above that of the last activation; ENOSPC when there are more logs than slots.
  int activate(uint64_t log_id, uint64_t epoch, uint64_t tail);

  // Grants `count` positions from `first` on. EOVERFLOW when they would pass the last possible one.
  int next(uint64_t log_id, uint64_t epoch, uint64_t count, uint64_t* first);

  // The next position that would be granted.
  int tail(uint64_t log_id, uint64_t epoch, uint64_t* tail);

  // Waits until the tail is above `position`. EAGAIN when `timeout_ms` has passed first.
  int wait(uint64_t log_id, uint64_t epoch, uint64_t position, int timeout_ms, uint64_t* tail);

  // Frees the slot of a log that is gone. 0 also when it has none.
  int release(uint64_t log_id);

  // Each slot counts its changes, whatever log it is of. What is announced under a key is a change
  // of the slot that the key falls to, and does no more than wake the waits there.
  void announce(uint32_t key);
  uint32_t changes(uint32_t key) const;
  // Waits for another count than `seen`, and tells it; false when `timeout` has passed first.
  bool wait_for_change(uint32_t key, std::chrono::milliseconds timeout, uint32_t* seen);

  // The database that the positions were granted for, as its users have left it: its incarnation
  // (kIncarnationBytes) and how many transactions it had had. One that was put back from a backup
  // has another, or had fewer.

  // Whether a database may be the noted one, or nothing is noted.
  bool belongs_to(std::string_view incarnation, uint64_t transactions) const;

  // Notes a database that belongs here. One call at a time where nothing is noted.
  void note(std::string_view incarnation, uint64_t transactions);

  // Forgets it, before another takes its place.
  void forget();

 private:
  struct Slot;
  struct Region;
  class Lock;

  explicit SharedSequencer(Region* region) : region_(region) {}
  static int initialise(Region* region);
  static int create_file(const std::string& directory, const std::string& path);
  static int map_file(const std::string& path, Region** region);

  Slot* find(uint64_t log_id) const;
  int claim(uint64_t log_id, Slot** slot);

  Region* const region_;
};

}  // namespace zlog
