#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace zlog {

// A sequencer in memory that several processes share, so that no daemon is needed on one machine.
//
// Like CORFU's sequencer it is only a hint: it grants positions under an epoch, and the epoch in
// the stripe objects decides. If its memory is lost (by a reboot, a deleted file, or a process that
// was killed while it held a lock), the log is activated again with a higher epoch.
//
// States of a log's slot: free → active at an epoch, with a tail (activate) → active at a higher
// epoch … → broken (a process died while it changed the slot; the next activation repairs it) →
// free (release).
class SharedSequencer {
 public:
  // All calls that return an int return 0 or a negative errno. ESTALE: the log is not active at
  // that epoch. ETIMEDOUT: a stopped process has locked the slot.

  // Maps the file `directory`/sequencer. Creates a new file if it is missing, has another version
  // or layout, or was made before a reboot.
  static int open(const std::string& directory, std::shared_ptr<SharedSequencer>* sequencer);

  // Makes a sequencer in anonymous memory, for this process and its children.
  static int open_anonymous(std::shared_ptr<SharedSequencer>* sequencer);

  // Makes the log active at `epoch`, with positions granted from `tail` on. ESTALE: the epoch is
  // not above the last one. ENOSPC: there are more logs than slots.
  int activate(uint64_t log_id, uint64_t epoch, uint64_t tail);

  // Grants `count` positions from `first` on. EOVERFLOW if they would pass the last possible one.
  int next(uint64_t log_id, uint64_t epoch, uint64_t count, uint64_t* first);

  // Returns the next position that would be granted.
  int tail(uint64_t log_id, uint64_t epoch, uint64_t* tail);

  // Waits until the tail is above `position`. EAGAIN: `timeout_ms` has passed.
  int wait(uint64_t log_id, uint64_t epoch, uint64_t position, int timeout_ms, uint64_t* tail);

  // Frees the slot of a removed log. Also returns 0 if the log has no slot.
  int release(uint64_t log_id);

  // Each slot counts its changes, whichever log uses it. announce() counts a change of the slot
  // that the key maps to, and wakes the waits for that slot.
  void announce(uint32_t key);
  uint32_t changes(uint32_t key) const;
  // Waits until the count differs from `seen`, and stores it there. Returns false if `timeout`
  // passes first.
  bool wait_for_change(uint32_t key, std::chrono::milliseconds timeout, uint32_t* seen);

  // The file notes which database the positions were granted for: its incarnation, and the number
  // of its transactions when its users last changed it. A database that was restored from a backup
  // has another incarnation or fewer transactions.

  // Returns whether a database may be the noted one. Also true if none is noted.
  bool belongs_to(std::string_view incarnation, uint64_t transactions) const;

  // Notes a database, for which belongs_to() must be true. While none is noted, only one call may
  // run at a time.
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
