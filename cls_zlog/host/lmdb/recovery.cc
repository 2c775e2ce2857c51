// What LmdbEnv does with its redo log beside commits.

#include <cerrno>
#include <string>

#include "cls_zlog/host/lmdb/call.h"
#include "cls_zlog/host/lmdb/env.h"

namespace zlog {

// Makes the changes again that a loss of power took from the database after they were durable.
int LmdbEnv::recover(std::string* reason) {
  if (const int error = find_redo_log()) return error;
  std::string changes;
  for (uint64_t next = transactions() + 1; redo_.load(next, incarnation_, &changes); next++) {
    if (read_only_ && redo_.noted_since_boot(next)) return 0;  // a writer is about to commit it
    if (read_only_) {
      *reason = "the power failed in its last transaction, which opening it for writing completes";
      return -EBUSY;
    }
    int failed = redo(next);
    if (failed == -ENOSPC) {
      reserve_.open(directory_);
      failed = run_with_reserve([&] { return redo(next); });
    }
    if (failed != 0) return failed;
  }
  return 0;
}

// Without transact(), which a compaction would wait for.
int LmdbEnv::find_redo_log() {
  MDB_txn* txn = nullptr;
  const unsigned flags = locks_.pid_taken() ? 0 : MDB_RDONLY;
  if (const int result = ::mdb_txn_begin(env_, nullptr, flags, &txn)) return lmdb_errno(result);
  const int error = redo_.find(env_, txn, kMainDatabase);
  ::mdb_txn_abort(txn);
  return error == -ENOENT ? 0 : error;
}

int LmdbEnv::redo(uint64_t transaction) {
  return write([&](MDB_txn* txn, MDB_dbi dbi) {
    std::string changes;
    const bool others = ::mdb_txn_id(txn) != transaction;  // they have committed it meanwhile
    if (others || !redo_.load(transaction, incarnation_, &changes)) return 0;
    return Redo::apply(changes, txn, dbi);
  });
}

// What its caller was told has failed shall not be made again, unless another one has come since.
void LmdbEnv::forget_failed(uint64_t transaction) {
  MDB_txn* txn = nullptr;
  if (LmdbAssertion::failed() || ::mdb_txn_begin(env_, nullptr, 0, &txn) != 0) return;
  if (::mdb_txn_id(txn) == transaction) redo_.forget(transaction);
  ::mdb_txn_abort(txn);
}

}  // namespace zlog
