#pragma once

#include <lmdb.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>

#include "cls_zlog/host/lmdb/locks.h"
#include "cls_zlog/host/lmdb/redo_log.h"
#include "cls_zlog/host/lmdb/reserve.h"
#include "cls_zlog/host/lmdb/shared_sequencer.h"

namespace zlog {

class CompactCopy;

// An LMDB environment in a directory. A process opens it only once, because LMDB identifies its
// users by their process. Once its files are removed or replaced, it no longer works, and the
// directory must be opened again. Calls that return an int return 0 or a negative errno.
class LmdbEnv {
 public:
  using Work = std::function<int(MDB_txn* txn)>;

  // Work that records everything it changes in `changes`.
  using NotingWork = std::function<int(MDB_txn* txn, Redo* changes)>;

  // Opens the environment in `directory`, which must exist. Maps `map_bytes`, or less if the
  // process cannot use that much address space. If `read_only` is set, creates no file and writes
  // only to lock.mdb. Returns EPROTO if the database's format is unknown, EIO if the files are
  // damaged, and EBUSY or ETXTBSY if another process's use of the database prevents it
  // (DatabaseLock). On an error, `reason` may contain an explanation.
  static int open(const std::string& directory, size_t map_bytes, bool read_only,
                  std::shared_ptr<LmdbEnv>* env, std::string* reason);

  // Runs `work` in a transaction, and commits it if `work` returns 0. If write() returns 0, the
  // changes are durable; otherwise nothing is changed. Waits for the writers of all processes.
  //
  // Returns ESTALE if the environment's files were removed or replaced, EUCLEAN if the database was
  // overwritten or restored from a backup, and EIO if pages are damaged. After EIO, this process
  // cannot write any more. Other processes can, once the thread that found the damage has ended,
  // which may be any thread of this process.
  int write(const Work& work) { return transact(0, true, work); }

  // Like write(), with one sync instead of two if there are few changes (RedoLog). If `wait` is
  // false, returns EBUSY and does nothing while another thread or process writes.
  int change(const NotingWork& work, bool wait = true);

  // Runs `work`, which must not change anything, in a snapshot. Waits for writers only if a process
  // in another container has the same pid. Returns ESTALE as write() does, and ETXTBSY if another
  // process has begun to write and this process cannot register as a reader in lock.mdb.
  int read(const Work& work);

  // Returns the format of the database: 2 if it has a redo log, else 1.
  int format() const { return redo_.found() ? 2 : 1; }

  // Commits an extra transaction. LMDB holds freed pages back for one transaction, so the next one
  // can then use the pages that the previous one freed.
  int release_freed_pages();

  // Returns whether a transaction that adds this much data would leave enough pages for another
  // transaction that frees space.
  bool has_space_for(size_t bytes);

  // Sets `bytes` to the amount of data that fits into free pages of the file, even on a full disk.
  int space_inside(uint64_t* bytes);

  // Runs work that frees space, and lets it use the space that is reserved for such work.
  int run_with_reserve(const std::function<int()>& run);

  // Replaces the database with a copy without free pages, while other users in this process wait.
  // Returns EBUSY, and changes nothing, if other processes have it open.
  int compact(std::string* reason);

  // Releases the snapshots of processes that were killed, which would keep LMDB from reusing old
  // pages.
  void forget_dead_readers();

 private:
  LmdbEnv(const std::string& directory, size_t map_bytes, bool read_only);
  ~LmdbEnv();

  static void release(LmdbEnv* env);
  int start(std::string* reason);
  int start_guarded(std::string* reason);
  int open_database(MDB_env* handle);
  int open_map(std::string* reason);
  int replace_by(CompactCopy* copy, std::string* reason);
  int check_identity();
  int recover(std::string* reason);
  int find_redo_log();
  int redo(uint64_t transaction);
  int check_history();
  int check_current(MDB_txn* txn, bool reads);
  uint64_t transactions() const;
  bool in_place() const { return lock_.in_place() && (unlisted_ || locks_.in_place()); }
  bool in_place_lately();
  int transact(unsigned flags, bool commits, const Work& work, const Redo* changes = nullptr,
               bool wait = true);
  int begin(unsigned flags, MDB_txn** txn);
  int adopt_map_of_others();
  int commit(MDB_txn* txn, const Redo* changes);
  void forget_failed(uint64_t transaction);

  const std::string directory_;
  const size_t map_bytes_;
  const bool read_only_;
  const bool unlisted_;  // reads in glances, since it can't register itself in lock.mdb
  const pid_t pid_;
  size_t users_ = 0;  // guarded by the registry's mutex
  DatabaseLock lock_;
  LmdbLocks locks_;
  std::atomic<int64_t> looked_ms_{0};  // when a reader last found the files in place
  std::atomic<bool> damaged_{false};   // a write transaction was left in the middle
  Reserve reserve_;
  RedoLog redo_;
  std::string incarnation_;                  // empty if it has none yet
  std::shared_ptr<SharedSequencer> shared_;  // to compare histories with; may be missing
  MDB_env* env_ = nullptr;
  std::shared_mutex map_mutex_;  // shared: inside a transaction; alone: changing the map
  int lost_ = 0;                 // why the map is lost, an errno
};

}  // namespace zlog
