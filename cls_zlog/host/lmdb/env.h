#pragma once

#include <lmdb.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>

#include "cls_zlog/host/lmdb/database_lock.h"
#include "cls_zlog/host/lmdb/reader_locks.h"
#include "cls_zlog/host/lmdb/redo_log.h"
#include "cls_zlog/host/lmdb/reserve.h"
#include "cls_zlog/host/lmdb/shared_sequencer.h"

namespace zlog {

class CompactCopy;

// The negative errno for what an LMDB call returned.
int lmdb_errno(int result);

// An LMDB environment in a directory, opened once per process however often it is asked for: LMDB
// tells its users apart by their process. Once its files have been removed or replaced it does
// nothing more, and the directory is opened anew.
class LmdbEnv {
 public:
  // Works on the one database of a transaction. Answers 0 or a negative errno.
  using Work = std::function<int(MDB_txn* txn, MDB_dbi dbi)>;

  // The same, and notes all that it changes.
  using NotingWork = std::function<int(MDB_txn* txn, MDB_dbi dbi, Redo* changes)>;

  // Opens the environment in `directory` (which must exist), mapping up to `map_bytes` of it, or
  // less where the process may not have so much address space. Read-only, it makes no file and
  // writes to none but lock.mdb. Answers 0 or a negative errno: EPROTO when the directory holds
  // something that this version does not know, EIO when its files are damaged, EBUSY and ETXTBSY
  // when other users of the database are in the way (DatabaseLock). `reason` then says more, where
  // there is more to say than the errno does.
  static int open(const std::string& directory, size_t map_bytes, bool read_only,
                  std::shared_ptr<LmdbEnv>* env, std::string* reason);

  LmdbEnv(const LmdbEnv&) = delete;
  LmdbEnv& operator=(const LmdbEnv&) = delete;

  // Does the work in a transaction and commits if it answered 0; durable once this returns 0, and
  // nothing is changed otherwise. Waits for other writers, those of other processes too. ESTALE:
  // the files of the environment were removed or replaced. EUCLEAN: the database does not go on where
  // its users left off, having been put back from a backup or overwritten. EIO: pages
  // are damaged; this process can write no more, and others can once the thread that met it ends.
  int write(const Work& work);

  // As write, with one sync instead of two where the changes are few (RedoLog).
  int change(const NotingWork& work);

  // Does the work in a snapshot, which may not be changed. Waits for writers only where a process in
  // another container has the same pid. ESTALE: as write. ETXTBSY: the environment is read-only,
  // this process can't write lock.mdb, and another one has come to write.
  int read(const Work& work);

  // Of the database: 1, or 2, which has a redo log.
  int format() const { return redo_.found() ? 2 : 1; }

  // Lets the next transaction have the pages that the last one freed: LMDB keeps them back for one
  // transaction, which this one is. 0 or a negative errno.
  int release_freed_pages();

  // Whether a transaction that adds this much data leaves pages for one that makes room.
  bool has_room_for(size_t bytes);

  // How much data fits into pages of the file that are free: what can be added on a full disk.
  // Returns 0 or a negative errno.
  int room_inside(uint64_t* bytes);

  // Does what makes room with the space that was kept for it.
  int run_with_reserve(const std::function<int()>& run);

  // Puts a copy without free pages in the place of the database. Those who use it in this process
  // wait. Answers 0 or a negative errno: EBUSY when others have it open; nothing is changed then.
  int compact(std::string* reason);

  // Forgets the snapshots of processes that were killed: they keep old pages from being reused.
  void forget_dead_readers();

 private:
  // The unnamed database is the only one; LMDB gives it this handle.
  static constexpr MDB_dbi kMainDatabase = 1;

  LmdbEnv(const std::string& directory, size_t map_bytes, bool read_only);
  ~LmdbEnv();

  static void release(LmdbEnv* env);
  int start(std::string* reason);
  int start_listed(std::string* reason);
  int start_unguarded(std::string* reason);
  int open_database(MDB_env* handle);
  int open_map(std::string* reason);
  int replace_by(CompactCopy* copy, std::string* reason);
  int check_identity();
  int recover(std::string* reason);
  int find_redo_log();
  int redo(uint64_t transaction);
  int check_history();
  int check_current(MDB_txn* txn, unsigned flags);
  uint64_t transactions() const;
  bool in_place() const;
  bool in_place_lately();
  int transact(unsigned flags, bool commits, const Work& work, const Redo* changes = nullptr);
  int begin(unsigned flags, MDB_txn** txn);
  int adopt_map_of_others();
  int commit(MDB_txn* txn, const Redo* changes);
  void forget_failed(uint64_t transaction);

  const std::string directory_;
  const size_t map_bytes_;
  const bool read_only_;
  const bool unlisted_;  // reads in glances, since it can't list itself in lock.mdb
  const pid_t pid_;
  size_t users_ = 0;  // guarded by the registry's mutex
  DatabaseLock lock_;
  LmdbLocks locks_;
  std::atomic<int64_t> looked_ms_{0};  // when a reader last found the files in place
  std::atomic<bool> damaged_{false};   // a transaction that writes was left in the middle
  Reserve reserve_;
  RedoLog redo_;
  std::string incarnation_;                  // empty where it has none yet
  std::shared_ptr<SharedSequencer> shared_;  // to compare histories with; may be missing
  MDB_env* env_ = nullptr;
  std::shared_mutex map_mutex_;  // shared: inside a transaction; alone: changing the map
  int lost_ = 0;                 // why there is no map any more, an errno
};

}  // namespace zlog
