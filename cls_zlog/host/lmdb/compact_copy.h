#pragma once

#include <lmdb.h>

#include <string>

namespace zlog {

class LmdbLocks;

// A copy of a database without its free pages, which then takes the database's place. A process may
// die at any moment: until the copy is whole and synced the database is as before, then it is the
// copy.
//
// Life: empty → written → in place; or removed, with this object, or by the next writer to open the
// store.
class CompactCopy {
 public:
  // Of the database file `path`; the copy lies beside it.
  explicit CompactCopy(const std::string& path) : path_(path), copy_path_(beside(path)) {}
  ~CompactCopy();
  CompactCopy(const CompactCopy&) = delete;
  CompactCopy& operator=(const CompactCopy&) = delete;

  // Both answer 0 or a negative errno, and may then say more in `reason`.

  // Copies what `env` holds, which nothing may write to meanwhile, with the file's owner and
  // permissions, and syncs it.
  int write(MDB_env* env, std::string* reason);

  // Puts the copy in place, durably, while `env` is closed and no other process of zlog has the
  // database open. EBUSY when another program that uses LMDB has, as told by its lock on lock.mdb.
  int put_in_place(LmdbLocks* locks, std::string* reason);

  const std::string& path() const { return copy_path_; }
  bool in_place() const { return in_place_; }
  int fd() const { return fd_; }

  // The copy's descriptor, which is the caller's from now on.
  int release();

  // Removes what a compaction left that died.
  static void remove_left(const std::string& path);

 private:
  static std::string beside(const std::string& path) { return path + ".new"; }

  const std::string path_;
  const std::string copy_path_;
  int fd_ = -1;
  bool in_place_ = false;
};

}  // namespace zlog
