#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace zlog {

// A sequencer in memory that several processes share, so that a single machine needs no daemon.
//
// Like CORFU's sequencer, it is only a hint: it grants positions under an epoch, and the stripe
// objects refuse a stale epoch. If its memory is lost (after a reboot, after the file was deleted,
// or after a process was killed while it held a lock), logs are activated again in higher epochs.
//
// activate() gives a log a slot, or raises the epoch of its slot, and release() frees the slot. If
// a process dies while it changes a slot, the slot grants nothing until the next activation.
class SharedSequencer {
 public:
  // Calls that return an int return 0 or a negative errno: ESTALE if the log is not active at that
  // epoch, and ETIMEDOUT if a stopped process has locked the slot.

  // Maps the file `directory`/sequencer. Creates it if it is missing, and replaces it if it has
  // another version or layout or was made before the last reboot.
  static int open(const std::string& directory, std::shared_ptr<SharedSequencer>* sequencer);

  // Makes a sequencer in anonymous memory, for this process and its children.
  static int open_anonymous(std::shared_ptr<SharedSequencer>* sequencer);

  // Activates the log at `epoch`; positions are then granted from `tail` on. Returns ESTALE if the
  // epoch is not above the last one, and ENOSPC if all slots are in use.
  int activate(uint64_t log_id, uint64_t epoch, uint64_t tail);

  // Grants `count` positions from `first` on. EOVERFLOW if they would pass the last possible one.
  int next(uint64_t log_id, uint64_t epoch, uint64_t count, uint64_t* first);

  // Returns the next position that would be granted.
  int tail(uint64_t log_id, uint64_t epoch, uint64_t* tail);

  // Waits until the tail is above `position`. Returns EAGAIN after `timeout_ms`.
  int wait(uint64_t log_id, uint64_t epoch, uint64_t position, int timeout_ms, uint64_t* tail);

  // Frees the slot of a removed log. Also returns 0 if the log has no slot.
  int release(uint64_t log_id);

  // Increments the key's change counter, and wakes all waits for it. Keys may share a counter.
  void announce(uint32_t key);
  uint32_t changes(uint32_t key) const;
  // Waits until the counter differs from `seen`, and updates `seen`. Returns false after `timeout`.
  bool wait_for_change(uint32_t key, std::chrono::milliseconds timeout, uint32_t* seen);

  // The lock of the database that a writer takes before LMDB's, which can only be waited for.
  class WriterLock {
   public:
    ~WriterLock() { release(); }
    // Unless `wait` is set, returns EBUSY while another thread or process holds the lock.
    int take(SharedSequencer* shared, bool wait);
    void release();
    // Holds the lock until this thread ends.
    void keep() { shared_ = nullptr; }

   private:
    SharedSequencer* shared_ = nullptr;
  };

  // The file records for which database the positions were granted: the database's incarnation, and
  // its number of transactions after its users' last change. If the database was restored from a
  // backup, it has another incarnation or fewer transactions.

  // Returns whether a database may be the noted one. Also true if none is noted.
  bool belongs_to(std::string_view incarnation, uint64_t transactions) const;

  // Records the database for which positions are granted. belongs_to() must have returned true for
  // it. Calls must not overlap while no database is recorded.
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
