#include "cls_zlog/host/lmdb/env.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>

#include "cls_zlog/host/fork_mutex.h"
#include "cls_zlog/host/lmdb/call.h"
#include "cls_zlog/host/lmdb/compact_copy.h"
#include "cls_zlog/host/lmdb/file.h"
#include "cls_zlog/host/lmdb/identity.h"

namespace zlog {
namespace {

constexpr MDB_dbi kFreePages = 0;
constexpr size_t kPagesKept = 64;    // on a full disk, for what frees space
constexpr unsigned kReaders = 1024;  // snapshots at a time, over all processes
constexpr int64_t kLookMs = 10;      // how long a reader may not notice that the files are gone
constexpr size_t kMapBytesMin = size_t{64} << 20;
constexpr uint64_t kFullBytes = uint64_t{1} << 20;  // a file system with less left counts as full

constexpr const char* kDataFile = "/data.mdb";
constexpr const char* kLockFile = "/lock.mdb";

// The environments that this process has open, by their directories' real paths. Guarded by
// fork_mutex<LmdbEnv>().
std::map<std::string, LmdbEnv*>& registry() {
  // Never destroyed: a worker may still be running when the process ends.
  static auto* const instance = new std::map<std::string, LmdbEnv*>;
  return *instance;
}

// Returns whether a reader can register in lock.mdb, which LMDB requires if there are writers. Does
// not open the file, because closing it would release this process's locks on it.
bool can_list_itself(const std::string& directory) {
  return ::faccessat(AT_FDCWD, (directory + kLockFile).c_str(), R_OK | W_OK, AT_EACCESS) == 0;
}

bool file_system_full(const std::string& directory) {
  std::error_code unknown;
  return std::filesystem::space(directory, unknown).available < kFullBytes;
}

}  // namespace

int LmdbEnv::open(const std::string& directory, size_t map_bytes, bool read_only,
                  std::shared_ptr<LmdbEnv>* env, std::string* reason) {
  std::error_code failed;
  const std::string path = std::filesystem::canonical(directory, failed);
  if (failed) return -failed.value();
  const std::lock_guard<std::mutex> lock(fork_mutex<LmdbEnv>());
  LmdbEnv*& known = registry()[path];
  // An environment that a parent process opened can't be used here, and must not be closed.
  if (known == nullptr || known->pid_ != ::getpid() || !known->in_place()) {
    auto* const made = new LmdbEnv(path, map_bytes, read_only);
    if (const int error = made->start(reason)) {
      if (!made->damaged_) delete made;  // else see release()
      return error;
    }
    known = made;
  }
  if (known->read_only_ && !read_only) {
    *reason = "this process reads it with ?mode=ro: close that store first";
    return -EBUSY;
  }
  known->users_++;
  env->reset(known, &LmdbEnv::release);
  return 0;
}

LmdbEnv::LmdbEnv(const std::string& directory, size_t map_bytes, bool read_only)
    : directory_(directory),
      map_bytes_(map_bytes),
      read_only_(read_only),
      unlisted_(read_only && !can_list_itself(directory)),
      pid_(::getpid()) {}

LmdbEnv::~LmdbEnv() {
  if (env_ == nullptr) return;
  // After this sync the noted changes of the last transaction need not be made again.
  if (redo_.found() && !read_only_) ::mdb_env_sync(env_, 1);
  ::mdb_env_close(env_);
}

void LmdbEnv::release(LmdbEnv* env) {
  const std::lock_guard<std::mutex> lock(fork_mutex<LmdbEnv>());
  if (env->pid_ != ::getpid() || --env->users_ != 0) return;
  // The thread that found damage holds locks in the maps. If these were unmapped, the kernel could
  // not pass the locks on when the thread ends.
  if (env->damaged_) return;
  const auto known = registry().find(env->directory_);
  if (known != registry().end() && known->second == env) registry().erase(known);
  delete env;  // still under the mutex: it must be closed before anyone can open it again
}

int LmdbEnv::start(std::string* reason) {
  const std::string file = directory_ + kDataFile;
  if (const int error = check_not_emptied(directory_, reason)) return error;
  if (const int error = lock_.take(file, !read_only_, reason)) return error;
  if (!read_only_)
    CompactCopy(file).remove();  // no process is at work: it would hold the lock alone
  const auto open = [&] { return start_guarded(reason); };
  if (unlisted_) return lock_.glance(open);
  if (const int error = locks_.open(directory_ + kLockFile, !read_only_)) return error;
  return locks_.while_opening(reason, open);
}

int LmdbEnv::start_guarded(std::string* reason) {
  if (const int error = open_map(reason)) return error;
  forget_dead_readers();
  if (const int error = check_length(env_, reason)) return error;
  if (const int error = check_identity()) return error;
  if (const int error = recover(reason)) return error;
  if (read_only_) return 0;
  // A compaction may have renamed the file, and its process died before the rename was synced.
  if (const int error = sync_directory(directory_)) return error;
  reserve_.open(directory_);
  return check_history();
}

int LmdbEnv::open_map(std::string* reason) {
  // NOTLS: a snapshot belongs to its transaction, so that threads may come and go.
  const unsigned flags = MDB_NOTLS | (read_only_ ? MDB_RDONLY : 0u) | (unlisted_ ? MDB_NOLOCK : 0u);
  for (size_t bytes = map_bytes_;; bytes /= 2) {
    MDB_env* handle = nullptr;
    if (const int result = ::mdb_env_create(&handle)) return lmdb_errno(result);
    ::mdb_env_set_assert(handle, LmdbAssertion::fail);
    ::mdb_env_set_mapsize(handle, bytes);
    ::mdb_env_set_maxreaders(handle, kReaders);
    int result = ::mdb_env_open(handle, directory_.c_str(), flags, 0666);
    if (result == 0) result = open_database(handle);
    if (result == 0) {
      env_ = handle;
      return unlisted_ ? 0 : locks_.keep();
    }
    ::mdb_env_close(handle);
    if (result != ENOMEM || bytes / 2 < kMapBytesMin) {
      if (result < 0) *reason = ::mdb_strerror(result);  // LMDB's own errors say more than an errno
      return lmdb_errno(result);
    }
  }
}

// Opens the only database, once for all transactions. This transaction is the process's first
// reader, so LMDB locks the byte of the pid.
int LmdbEnv::open_database(MDB_env* handle) {
  MDB_txn* txn = nullptr;
  const unsigned flags = locks_.pid_taken() ? 0 : MDB_RDONLY;
  if (const int result = ::mdb_txn_begin(handle, nullptr, flags, &txn)) return result;
  MDB_dbi dbi = 0;
  const int result = ::mdb_dbi_open(txn, nullptr, 0, &dbi);
  ::mdb_txn_abort(txn);
  return result;
}

// Checks that the database has a known format; gives a new one its format and its incarnation.
int LmdbEnv::check_identity() {
  const int error = read([&](MDB_txn* txn) {
    const int failed = check_format(txn);
    if (failed != 0) return failed;
    const int unknown = read_incarnation(txn, &incarnation_);
    return read_only_ && unknown == -ENOENT ? 0 : unknown;
  });
  if (error == -ENOENT && read_only_) return -EPROTO;  // its creator died, or it is not zlog's
  if (error != -ENOENT) return error;
  if (const int failed = sync_directory(directory_ + "/..")) return failed;
  return write([&](MDB_txn* txn) {
    MDB_stat stat{};
    if (const int result = ::mdb_stat(txn, kEntries, &stat)) return lmdb_errno(result);
    const int known = check_format(txn);
    if (known == -ENOENT && stat.ms_entries != 0) return -EPROTO;  // another program's database
    if (known != 0 && known != -ENOENT) return known;
    if (known == -ENOENT) {
      if (const int failed = put_value(txn, kFormatKey, kFormat)) return failed;
      if (const int failed = RedoLog::make(txn)) return failed;
    }
    return put_new_incarnation(txn, &incarnation_);
  });
}

// Repeats durable changes that the database lost when the power failed.
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

// Does not use transact(), which would wait for the compaction that calls this.
int LmdbEnv::find_redo_log() {
  MDB_txn* txn = nullptr;
  const unsigned flags = locks_.pid_taken() ? 0 : MDB_RDONLY;
  if (const int result = ::mdb_txn_begin(env_, nullptr, flags, &txn)) return lmdb_errno(result);
  const int error = redo_.find(env_, txn);
  ::mdb_txn_abort(txn);
  return error == -ENOENT ? 0 : error;
}

int LmdbEnv::redo(uint64_t transaction) {
  return write([&](MDB_txn* txn) {
    std::string changes;
    const bool others = ::mdb_txn_id(txn) != transaction;  // they have committed it
    if (others || !redo_.load(transaction, incarnation_, &changes)) return 0;
    return Redo::apply(changes, txn);
  });
}

// Compares the database with the notes of its users in shared memory.
int LmdbEnv::check_history() {
  if (SharedSequencer::open(directory_, &shared_) != 0)
    return 0;  // the disk may have no space for it
  if (!shared_->belongs_to(incarnation_, transactions())) return -EUCLEAN;
  shared_->note(incarnation_, transactions());
  return 0;
}

// Checks that a transaction has begun in the database that was opened, in its last state.
int LmdbEnv::check_current(MDB_txn* txn, bool reads) {
  if (!(reads ? in_place_lately() : in_place())) return -ESTALE;
  // LMDB counts transactions in lock.mdb and in the file. A reader may be behind.
  const uint64_t number = ::mdb_txn_id(txn);
  if (reads) return transactions() >= number ? 0 : -EUCLEAN;
  if (transactions() != number - 1) return -EUCLEAN;
  if (shared_ == nullptr) return 0;
  std::string incarnation;
  if (const int error = read_incarnation(txn, &incarnation)) {
    return error == -ENOENT ? -EUCLEAN : error;
  }
  return shared_->belongs_to(incarnation, number - 1) ? 0 : -EUCLEAN;
}

// The number of transactions that the database has had, according to the file.
uint64_t LmdbEnv::transactions() const {
  MDB_envinfo info{};
  ::mdb_env_info(env_, &info);
  return info.me_last_txnid;
}

// Two looks at the file system take as long as the rest of a small read.
bool LmdbEnv::in_place_lately() {
  struct timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  const int64_t now = time.tv_sec * 1000 + time.tv_nsec / 1'000'000;
  if (now - looked_ms_.load(std::memory_order_relaxed) < kLookMs) return true;
  if (!in_place()) return false;
  looked_ms_.store(now, std::memory_order_relaxed);
  return true;
}

int LmdbEnv::change(const NotingWork& work, bool wait) {
  Redo changes;
  const auto noting = [&](MDB_txn* txn) { return work(txn, &changes); };
  return transact(0, true, noting, &changes, wait);
}

int LmdbEnv::read(const Work& work) {
  // A process whose pid is taken can't register as a reader. A writer need not register.
  const auto run = [&] { return transact(locks_.pid_taken() ? 0 : MDB_RDONLY, false, work); };
  return unlisted_ ? lock_.glance(run) : run();
}

int LmdbEnv::release_freed_pages() {
  return write([](MDB_txn* txn) {
    std::string format;
    const int error = get_value(txn, kFormatKey, &format);
    return error != 0 ? error : put_value(txn, kFormatKey, format);
  });
}

bool LmdbEnv::has_space_for(size_t bytes) {
  if (reserve_.whole() || reserve_.make() || locks_.pid_taken()) return true;
  uint64_t space = 0;
  return space_inside(&space) == 0 && space >= bytes;
}

int LmdbEnv::space_inside(uint64_t* bytes) {
  // LMDB lists free pages in a separate database, whose keys are the transactions that freed them.
  // A value is the number of pages, followed by the pages' numbers.
  size_t free_pages = 0, page_bytes = 0;
  const int error = read([&](MDB_txn* txn) {
    MDB_stat stat{};
    if (const int result = ::mdb_stat(txn, kFreePages, &stat)) return lmdb_errno(result);
    page_bytes = stat.ms_psize;
    Cursor cursor(txn, kFreePages);
    while (cursor.next()) free_pages += number_at<size_t>(cursor.value().data());
    return cursor.error();
  });
  *bytes = free_pages < kPagesKept ? 0 : (free_pages - kPagesKept) / 2 * page_bytes;
  return error;
}

int LmdbEnv::run_with_reserve(const std::function<int()>& run) {
  reserve_.give_up();
  const int error = run();
  reserve_.make();
  return error;
}

void LmdbEnv::forget_dead_readers() {
  const std::shared_lock<std::shared_mutex> lock(map_mutex_);
  int dead = 0;
  if (lost_ == 0) ::mdb_reader_check(env_, &dead);
}

int LmdbEnv::compact(std::string* reason) {
  if (read_only_) return -EROFS;
  if (damaged_) return -EIO;
  const std::unique_lock<std::shared_mutex> alone(map_mutex_);
  if (lost_ != 0) return -lost_;
  int error = lock_.take_alone();
  if (error == -EBUSY) *reason = "other processes have it open";
  if (error != 0) return error;
  CompactCopy copy(directory_ + kDataFile);
  error = copy.write(env_, reason);
  if (error == 0) error = DatabaseLock::hold(copy.fd());
  if (error == 0) error = replace_by(&copy, reason);
  lock_.share();
  return error;
}

int LmdbEnv::replace_by(CompactCopy* copy, std::string* reason) {
  ::mdb_env_close(env_);
  env_ = nullptr;
  if (shared_ != nullptr) shared_->forget();  // the copy counts its transactions from 1
  const int error = copy->put_in_place(&locks_, reason);
  if (copy->in_place()) lock_.move_to(copy->release());
  locks_.drop();
  lost_ = -open_map(reason);
  if (lost_ == 0) lost_ = -find_redo_log();
  if (lost_ == 0 && error != 0 && copy->in_place()) lost_ = ESTALE;  // its name may not last
  if (lost_ == 0 && shared_ != nullptr) shared_->note(incarnation_, transactions());
  return error != 0 ? error : -lost_;
}

int LmdbEnv::transact(unsigned flags, bool commits, const Work& work, const Redo* changes,
                      bool wait) {
  const bool reads = (flags & MDB_RDONLY) != 0;
  std::shared_lock<std::shared_mutex> lock(map_mutex_, std::defer_lock);
  if (wait) {
    lock.lock();
  } else if (shared_ == nullptr || !lock.try_lock()) {
    return -EBUSY;
  }
  SharedSequencer::WriterLock turn;
  if (!reads && shared_ != nullptr) {
    if (damaged_) return -EIO;  // its finder has kept the lock
    if (const int error = turn.take(shared_.get(), wait)) return error;
  }
  MDB_txn* txn = nullptr;
  const int result = begin(flags, &txn);
  if (result == MDB_MAP_RESIZED) {
    turn.release();  // for the writers of this process, which must end before the map is replaced
    lock.unlock();
    if (const int error = adopt_map_of_others()) return error;
    return transact(flags, commits, work, changes, wait);
  }
  if (result != 0) return lmdb_errno(result);
  int error = -EIO;
  try {
    error = check_current(txn, reads);
    if (error == 0) error = work(txn);
  } catch (...) {
    ::mdb_txn_abort(txn);
    throw;
  }
  const bool committed = error == 0 && commits;
  if (committed) error = commit(txn, changes);
  if (LmdbAssertion::take() && !reads) {
    damaged_ = true;
    turn.keep();  // as LMDB keeps its own lock
    return -EIO;
  }
  if (!committed) ::mdb_txn_abort(txn);
  return error;
}

int LmdbEnv::begin(unsigned flags, MDB_txn** txn) {
  if (lost_ != 0) return lost_;
  if (damaged_ && !(flags & MDB_RDONLY)) return EIO;
  int result = ::mdb_txn_begin(env_, nullptr, flags, txn);
  if (result == MDB_READERS_FULL) {
    int dead = 0;
    ::mdb_reader_check(env_, &dead);
    result = ::mdb_txn_begin(env_, nullptr, flags, txn);
  }
  return result;
}

// A process that may use more address space has written beyond this map.
int LmdbEnv::adopt_map_of_others() {
  const std::unique_lock<std::shared_mutex> alone(map_mutex_);
  if (lost_ != 0) return -lost_;
  const int result = ::mdb_env_set_mapsize(env_, 0);
  if (result != 0) lost_ = ENOMEM;  // the old map is gone too, and any use of it would be a crash
  return lmdb_errno(result);
}

int LmdbEnv::commit(MDB_txn* txn, const Redo* changes) {
  const uint64_t number = ::mdb_txn_id(txn);
  const bool noted = changes != nullptr && redo_.note(number, incarnation_, *changes);
  ::mdb_env_set_flags(env_, MDB_NOMETASYNC, noted);  // LMDB's lock is held until the commit is over
  int error = lmdb_errno(lmdb_call([&] { return ::mdb_txn_commit(txn); }));
  if (error != 0 && noted) forget_failed(number);
  if (error == -EDQUOT) error = -ENOSPC;
  if (error == 0 && shared_ != nullptr) shared_->note(incarnation_, transactions());
  // LMDB returns EIO for a write that the file system cut short.
  return error == -EIO && file_system_full(directory_) ? -ENOSPC : error;
}

// Erases the note of a failed transaction, unless another transaction has followed.
void LmdbEnv::forget_failed(uint64_t transaction) {
  MDB_txn* txn = nullptr;
  if (LmdbAssertion::failed || ::mdb_txn_begin(env_, nullptr, 0, &txn) != 0) return;
  if (::mdb_txn_id(txn) == transaction) redo_.forget(transaction);
  ::mdb_txn_abort(txn);
}

}  // namespace zlog
