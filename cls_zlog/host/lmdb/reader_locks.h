#pragma once

#include <string>

#include "cls_zlog/host/lmdb/file_lock.h"

namespace zlog {

// Holds LMDB's locks on lock.mdb in a way that lasts.
//
// LMDB's own belong to the process (F_SETLK): when it closes any descriptor of the file, having
// copied it perhaps, they are gone. The next process to open the database then takes itself for the
// only one and makes the mutexes and the list of readers anew, under those who use them. Locks on
// the same bytes that belong to an open file (F_OFD_SETLK) tell LMDB the same and stay.
//
// Life: open → [begin_opening → LMDB opens the database → keep → end_opening]; between two such
// rounds, and before LMDB opens the database again, drop.
class LmdbLocks {
 public:
  LmdbLocks() = default;
  ~LmdbLocks();
  LmdbLocks(const LmdbLocks&) = delete;
  LmdbLocks& operator=(const LmdbLocks&) = delete;

  // All calls answer 0 or a negative errno: EBUSY when others have been in the way for too long.

  // Opens the file, which is made if it is missing and `create` says so.
  int open(const std::string& path, bool create);

  // Whether the file is still the one at its path.
  bool in_place() const;

  // Until its end, other processes wait with opening the database: LMDB's locks are not kept yet.
  int begin_opening();
  void end_opening();

  // Whether a process in another container has the same pid, under which LMDB lists its readers.
  bool pid_taken() const { return pid_taken_; }

  // Keeps what LMDB has locked: that the database is in use, and that this pid may be in the list.
  int keep();
  void drop();

  // Has the file for itself while the database is closed. EBUSY: some program has it open in LMDB.
  int take_alone();

 private:
  std::string path_;
  int fd_ = -1;
  FileIdentity identity_;
  bool pid_taken_ = false;
};

// A process opens the database, for as long as this lives.
class Opening {
 public:
  explicit Opening(LmdbLocks* locks) : locks_(locks), error_(locks->begin_opening()) {}
  ~Opening() { locks_->end_opening(); }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

  int error() const { return error_; }

 private:
  LmdbLocks* const locks_;
  const int error_;
};

}  // namespace zlog
