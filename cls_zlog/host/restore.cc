#include "cls_zlog/host/restore.h"

#include <lmdb.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "cls_zlog/host/compact_copy.h"
#include "cls_zlog/host/database_lock.h"
#include "cls_zlog/host/lmdb_env.h"
#include "cls_zlog/host/lmdb_file.h"
#include "cls_zlog/host/lmdb_identity.h"
#include "cls_zlog/host/lmdb_locks.h"
#include "cls_zlog/host/redo_log.h"

namespace zlog {
namespace {

// A database file that only this process uses.
class File {
 public:
  ~File() {
    if (env_ != nullptr) ::mdb_env_close(env_);
  }
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int open(const std::string& path, unsigned flags) {
    if (const int result = ::mdb_env_create(&env_)) return lmdb_errno(result);
    return lmdb_errno(::mdb_env_open(env_, path.c_str(), flags | MDB_NOSUBDIR | MDB_NOLOCK, 0));
  }

  // Does work(txn, dbi) in a transaction, and commits if it answered 0.
  template <typename Work>
  int transact(unsigned flags, Work&& work) {
    MDB_txn* txn = nullptr;
    if (const int result = ::mdb_txn_begin(env_, nullptr, flags, &txn)) return lmdb_errno(result);
    MDB_dbi dbi = 0;
    int error = lmdb_errno(::mdb_dbi_open(txn, nullptr, 0, &dbi));
    if (error == 0) error = work(txn, dbi);
    if (error == 0) return lmdb_errno(::mdb_txn_commit(txn));
    ::mdb_txn_abort(txn);
    return error;
  }

  MDB_env* env() const { return env_; }

 private:
  MDB_env* env_ = nullptr;
};

using Pending = std::vector<std::string>;

// Adds the changes that are durable in a database beyond its last transaction.
int find_pending(MDB_env* env, MDB_txn* txn, MDB_dbi dbi, Pending* pending) {
  std::string incarnation, changes;
  RedoLog log;
  int error = log.find(env, txn, dbi);
  if (error == 0) error = read_incarnation(txn, dbi, &incarnation);
  if (error != 0) return error == -ENOENT ? 0 : error;
  for (uint64_t next = ::mdb_txn_id(txn) + 1; log.load(next, incarnation, &changes); next++) {
    pending->push_back(changes);
  }
  return 0;
}

int copy_backup(const std::string& backup, CompactCopy* copy, Pending* pending,
                std::string* reason) {
  File file;
  if (const int error = file.open(backup, MDB_RDONLY)) return error;
  if (const int error = check_length(file.env(), reason)) return error;
  const int error = file.transact(MDB_RDONLY, [&](MDB_txn* txn, MDB_dbi dbi) {
    const int failed = check_format(txn, dbi);
    return failed != 0 ? failed : find_pending(file.env(), txn, dbi, pending);
  });
  if (error != 0) return error == -ENOENT ? -EPROTO : error;
  return copy->write(file.env(), reason);
}

int begin_incarnation(const std::string& path, const Pending& pending) {
  File file;
  if (const int error = file.open(path, 0)) return error;
  return file.transact(0, [&](MDB_txn* txn, MDB_dbi dbi) {
    for (const std::string& changes : pending) {
      if (const int error = Redo::apply(changes, txn, dbi)) return error;
    }
    std::string incarnation;
    return put_new_incarnation(txn, dbi, &incarnation);
  });
}

}  // namespace

int restore_store(const std::string& directory, const std::string& backup, std::string* reason) {
  const std::string path = directory + "/data.mdb", sequencer = directory + "/sequencer";
  DatabaseLock lock;
  if (const int error = lock.take(path, true, reason)) return error;
  const int error = lock.take_alone();
  if (error == -EBUSY) *reason = "it is open, in this process or another";
  if (error != 0) return error;
  LmdbLocks locks;
  if (const int failed = locks.open(directory + "/lock.mdb", true)) return failed;
  CompactCopy copy(path);
  Pending pending;
  if (const int failed = copy_backup(backup, &copy, &pending, reason)) return failed;
  if (const int failed = begin_incarnation(copy.path(), pending)) return failed;
  // It notes a later state, and higher epochs and positions. Nothing is lost with it.
  if (::unlink(sequencer.c_str()) != 0 && errno != ENOENT) return -errno;
  return copy.put_in_place(&locks, reason);
}

}  // namespace zlog
