#pragma once

#include <lmdb.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>

namespace zlog {

// LMDB 0.9 lays out a page of its file like this (struct MDB_page). All numbers are in the machine's
// byte order.
constexpr size_t kPageHeaderBytes = 16;
constexpr size_t kPageFlagsAt = 10;

template <typename Number>
Number number_at(const char* at) {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

// All calls below return 0 or a negative errno.

// A database file that only this process uses, until this object ends.
class LmdbFile {
 public:
  LmdbFile() = default;
  ~LmdbFile() {
    if (env_ != nullptr) ::mdb_env_close(env_);
  }
  LmdbFile(const LmdbFile&) = delete;
  LmdbFile& operator=(const LmdbFile&) = delete;

  // Opens it with LMDB's flags. LMDB calls `on_damage` if it finds a page damaged; if that returns,
  // or is missing, LMDB ends the process.
  int open(const std::string& path, unsigned flags, MDB_assert_func* on_damage = nullptr);

  // Does the work in a transaction, and commits if it returned 0.
  int transact(unsigned flags, const std::function<int(MDB_txn* txn)>& work);

  MDB_env* env() const { return env_; }

 private:
  MDB_env* env_ = nullptr;
};

// LMDB trusts the length of its file: if it was truncated, touching a page that is gone kills the
// process (SIGBUS), and an emptied file becomes a new database. These two check that before.

// Before LMDB opens the database. EIO: it is missing or empty although the store was in use.
int check_not_emptied(const std::string& directory, std::string* reason);

// After LMDB opened it, and before anything is read. EIO: a page in use is beyond the file's end.
int check_length(MDB_env* env, std::string* reason);

// Lets all users of a directory's database use a file, which another user than the store's may be
// creating.
int share_as_database(int fd, const std::string& directory);

// Syncs a directory's own entries: a synced file is of no use if its name is lost.
int sync_directory(const std::string& directory);

}  // namespace zlog
