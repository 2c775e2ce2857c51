#pragma once

#include <lmdb.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>

namespace zlog {

// The layout of a page in LMDB 0.9's file (struct MDB_page). Numbers are in the machine's byte
// order.
constexpr size_t kPageHeaderBytes = 16;
constexpr size_t kPageFlagsAt = 10;

template <typename Number>
Number number_at(const char* at) {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

// All calls below return 0 or a negative errno.

// A database file that only this process uses. It is closed with this object.
class LmdbFile {
 public:
  LmdbFile() = default;
  ~LmdbFile() {
    if (env_ != nullptr) ::mdb_env_close(env_);
  }
  LmdbFile(const LmdbFile&) = delete;
  LmdbFile& operator=(const LmdbFile&) = delete;

  // Opens the file with LMDB's flags. If LMDB finds a damaged page, it calls `on_damage`, which
  // must not return; without `on_damage`, it aborts the process.
  int open(const std::string& path, unsigned flags, MDB_assert_func* on_damage = nullptr);

  // Does the work in a transaction, and commits if the work returns 0.
  int transact(unsigned flags, const std::function<int(MDB_txn* txn)>& work);

  MDB_env* env() const { return env_; }

 private:
  MDB_env* env_ = nullptr;
};

// The two functions below detect a file that is too short, which LMDB does not. It turns an empty
// file into a new database, and access to a missing page kills the process (SIGBUS).

// Checks, before LMDB opens the database, that the data file was not lost. Returns EIO if the file
// is missing or empty although the store was in use.
int check_not_emptied(const std::string& directory, std::string* reason);

// Checks that the file contains all pages that are in use. Call this after LMDB has opened the
// database and before anything is read. Returns EIO if a page is missing.
int check_length(MDB_env* env, std::string* reason);

// Gives a file the permissions that all users of the directory's database need, because the user
// who creates the file may not be the store's owner.
int share_as_database(int fd, const std::string& directory);

// Syncs the entries of a directory: a synced file is of no use if its name is lost.
int sync_directory(const std::string& directory);

}  // namespace zlog
