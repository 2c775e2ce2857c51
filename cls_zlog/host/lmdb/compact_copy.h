#pragma once

#include <lmdb.h>

#include <string>
#include <utility>

#include "cls_zlog/host/file_descriptor.h"

namespace zlog {

class LmdbLocks;

// A copy of a database without its free pages, which then replaces the database. If the process
// dies before that, the database is unchanged, and the next writer that opens the store removes the
// copy. All calls return 0, or a negative errno with an optional explanation in `reason`.
class CompactCopy {
 public:
  // Makes the copy in the directory of the database file `path`.
  explicit CompactCopy(const std::string& path) : path_(path), copy_path_(path + ".new") {}
  ~CompactCopy() {
    if (fd_ >= 0 && !in_place_) remove();
  }

  // Copies the database of `env` and syncs the copy, which gets the same owner and permissions. The
  // database must not change during the call.
  int write(MDB_env* env, std::string* reason);

  // Replaces the database durably. `env` must be closed, and no other zlog process may have the
  // database open. Returns EBUSY if another program that uses LMDB has it open.
  int put_in_place(LmdbLocks* locks, std::string* reason);

  const std::string& path() const { return copy_path_; }
  bool in_place() const { return in_place_; }
  int fd() const { return fd_; }
  FileDescriptor release() { return std::move(fd_); }

  // Removes the copy, even if an earlier process left it behind.
  void remove() const;

 private:
  const std::string path_;
  const std::string copy_path_;
  FileDescriptor fd_;
  bool in_place_ = false;
};

}  // namespace zlog
