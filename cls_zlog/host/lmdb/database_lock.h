#pragma once

#include <cstddef>
#include <mutex>
#include <string>

#include "cls_zlog/host/lmdb/file_lock.h"

namespace zlog {

// Tells the users of a database of each other, by locks on bytes of its file. They belong to the
// open file (F_OFD_SETLK): they count between handles of one process too, and end with their owner.
// To take one that is shared, permission to read is enough, on a read-only file system too.
//
// LMDB's own locks are on lock.mdb. Readers list themselves there, so that the pages they read are
// not written to meanwhile. One that can't write that file, or finds none, only looks at the
// database for the length of a transaction, while no process has it open for writing: a glance.
class DatabaseLock {
 public:
  DatabaseLock() = default;
  ~DatabaseLock();
  DatabaseLock(const DatabaseLock&) = delete;
  DatabaseLock& operator=(const DatabaseLock&) = delete;

  // Notes a user of the file, which a writer makes if it is missing. A writer waits for the glances
  // under way. Answers 0 or a negative errno: EBUSY, and what for in `reason`, when it had to wait
  // for more than some seconds.
  int take(const std::string& path, bool writer, std::string* reason);

  // Whether the file is still the one at its path.
  bool in_place() const;

  // For a writer that puts another file in the place of this one: to be alone with the database
  // (EBUSY while another process has it open), and not any more; and to hold the other file as this
  // one before it is in place, and nothing but it then.
  int take_alone();
  void share();
  int hold(int copy);
  void move_to(int copy);

  // Begins a glance; several may overlap. Answers 0 or a negative errno: ETXTBSY while a process
  // has the database open for writing.
  int begin_glance();
  void end_glance();

 private:
  int take_shared(bool writer, std::string* reason);

  std::string path_;
  int fd_ = -1;
  FileIdentity identity_;
  std::mutex mutex_;
  size_t glances_ = 0;  // guarded by mutex_: the lock is one for all of them
};

// A glance that ends with its scope.
class Glance {
 public:
  explicit Glance(DatabaseLock* lock) : lock_(lock), error_(lock->begin_glance()) {}
  ~Glance() {
    if (error_ == 0) lock_->end_glance();
  }
  Glance(const Glance&) = delete;
  Glance& operator=(const Glance&) = delete;

  int error() const { return error_; }

 private:
  DatabaseLock* const lock_;
  const int error_;
};

}  // namespace zlog
