#pragma once

#include <lmdb.h>

#include <functional>
#include <string>

namespace zlog {

// A database file that only this process uses, until this object ends.
class LmdbFile {
 public:
  LmdbFile() = default;
  ~LmdbFile();
  LmdbFile(const LmdbFile&) = delete;
  LmdbFile& operator=(const LmdbFile&) = delete;

  // Both answer 0 or a negative errno.

  // Opens it with LMDB's flags. `on_damage` is called where LMDB finds a page damaged; if it returns,
  // or there is none, LMDB ends the process.
  int open(const std::string& path, unsigned flags, MDB_assert_func* on_damage = nullptr);

  // Does the work in a transaction, and commits if it answered 0.
  int transact(unsigned flags, const std::function<int(MDB_txn* txn, MDB_dbi dbi)>& work);

  MDB_env* env() const { return env_; }

 private:
  MDB_env* env_ = nullptr;
};

// LMDB trusts the length of its file: where that was cut short, touching a page that is gone kills
// the process (SIGBUS), and an emptied file becomes a new database. These find out before.
//
// Both answer 0 or a negative errno, and then say in `reason` what is wrong.

// Before LMDB opens the database: EIO when it is missing or empty although the store was in use.
int check_not_emptied(const std::string& directory, std::string* reason);

// After LMDB opened it, and before anything is read: EIO when a page in use lies beyond the file's
// end.
int check_length(MDB_env* env, std::string* reason);

// Lets those use a file who may use the database of a directory: another user than the store's may
// be making it. Answers 0 or a negative errno.
int share_as_database(int fd, const std::string& directory);

// Puts a directory's own entries on disk: a synced file is of no use where its name is lost.
// Answers 0 or a negative errno.
int sync_directory(const std::string& directory);

}  // namespace zlog
