#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace zlog {

// A sequencer that several processes share through memory, so that one machine needs no daemon.
//
// It is a hint, as CORFU's sequencer is: positions are granted under an epoch, and the epoch in the
// stripe objects decides. Losing its memory (a reboot, a deleted file, a process killed while it held
// a lock) costs an activation with a higher epoch.
//
// Life of a log's slot: free → active at an epoch, with a tail (activate) → active at a higher
// epoch … → broken (a process died while it changed the slot; the next activation repairs it) → free
// (release).
class SharedSequencer {
 public:
  // All calls that return an int return 0 or a negative errno. ESTALE: the log is not active at that
  // epoch. ETIMEDOUT: a stopped process holds the slot.

  // Maps the file `directory`/sequencer. Creates it if it is missing, of another version or from
  // before a reboot.
  static int open(const std::string& directory, std::shared_ptr<SharedSequencer>* sequencer);

  // Makes a sequencer in anonymous memory, for this process and its children.
  static int open_anonymous(std::shared_ptr<SharedSequencer>* sequencer);

  // Lets the log's positions from `tail` on be granted under `epoch`. ESTALE unless the epoch is above
  // the last one; ENOSPC if there are more logs than slots.
  int activate(uint64_t log_id, uint64_t epoch, uint64_t tail);

  // Grants `count` positions from `first` on. EOVERFLOW if they would pass the last possible one.
  int next(uint64_t log_id, uint64_t epoch, uint64_t count, uint64_t* first);

  // Returns the next position that would be granted.
  int tail(uint64_t log_id, uint64_t epoch, uint64_t* tail);

  // Waits until the tail is above `position`. EAGAIN if `timeout_ms` has passed first.
  int wait(uint64_t log_id, uint64_t epoch, uint64_t position, int timeout_ms, uint64_t* tail);

  // Frees the slot of a removed log. Returns 0 also if it has none.
  int release(uint64_t log_id);

  // Each slot counts its changes, whichever log uses it. An announcement under a key changes the slot
  // that the key maps to, and only wakes the waits there.
  void announce(uint32_t key);
  uint32_t changes(uint32_t key) const;
  // Waits for another count than `seen`, and stores it there; false if `timeout` has passed first.
  bool wait_for_change(uint32_t key, std::chrono::milliseconds timeout, uint32_t* seen);

  // The file notes the database that the positions were granted for, as its users have left it: its
  // incarnation and the number of its transactions. A database that was restored from a backup has
  // another incarnation, or fewer transactions.

  // Whether a database may be the noted one, or none is noted.
  bool belongs_to(std::string_view incarnation, uint64_t transactions) const;

  // Notes a database that belongs here. One call at a time while none is noted.
  void note(std::string_view incarnation, uint64_t transactions);

  // Forgets the database, before another replaces it.
  void forget();

 private:
  struct Slot;
  struct Region;
  class Lock;
  struct Unmap {
    void operator()(Region* region) const;
  };
  using Mapping = std::unique_ptr<Region, Unmap>;

  explicit SharedSequencer(Mapping region) : region_(std::move(region)) {}
  static int map(int fd, Mapping* region);
  static int initialise(Region* region);
  static int create_file(const std::string& directory, const std::string& path);
  static int map_file(const std::string& path, Mapping* region);

  template <typename Use>
  int use(uint64_t log_id, uint64_t epoch, const Use& use);
  Slot* find(uint64_t log_id) const;
  int claim(uint64_t log_id, Slot** slot);

  const Mapping region_;
};

}  // namespace zlog
