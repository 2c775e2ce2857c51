#pragma once

#include <lmdb.h>

#include <string>
#include <utility>

#include "cls_zlog/host/file_descriptor.h"

namespace zlog {

class LmdbLocks;

// A copy of a database without its free pages, which then replaces the database. A process may die at
// any moment: until the copy is whole and synced the database is as before, then it is the copy.
//
// Life: empty → written → in place; or removed, with this object, or by the next writer to open the
// store. All calls return 0 or a negative errno, and may then say more in `reason`.
class CompactCopy {
 public:
  // For the database file `path`, in the same directory.
  explicit CompactCopy(const std::string& path) : path_(path), copy_path_(path + ".new") {}
  ~CompactCopy() {
    if (fd_ >= 0 && !in_place_) remove();
  }

  // Copies the database of `env`, which must not change during the call, with the file's owner and
  // permissions, and syncs the copy.
  int write(MDB_env* env, std::string* reason);

  // Replaces the database, durably, while `env` is closed and no other process of zlog has the
  // database open. EBUSY: another program that uses LMDB has, as its lock on lock.mdb shows.
  int put_in_place(LmdbLocks* locks, std::string* reason);

  const std::string& path() const { return copy_path_; }
  bool in_place() const { return in_place_; }
  int fd() const { return fd_; }
  FileDescriptor release() { return std::move(fd_); }

  // Removes the copy; also one of an earlier process that died.
  void remove() const;

 private:
  const std::string path_;
  const std::string copy_path_;
  FileDescriptor fd_;
  bool in_place_ = false;
};

}  // namespace zlog
