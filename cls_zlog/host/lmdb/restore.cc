#include "cls_zlog/host/lmdb/restore.h"

#include <fcntl.h>
#include <lmdb.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <string_view>
#include <vector>

#include "cls_zlog/host/exception_barrier.h"
#include "cls_zlog/host/lmdb/call.h"
#include "cls_zlog/host/lmdb/compact_copy.h"
#include "cls_zlog/host/lmdb/file.h"
#include "cls_zlog/host/lmdb/identity.h"
#include "cls_zlog/host/lmdb/locks.h"
#include "cls_zlog/host/lmdb/redo_log.h"

namespace zlog {
namespace {

// Ends this child process if LMDB finds a damaged page.
void end_quietly(MDB_env*, const char*) { ::_exit(1); }

using Pending = std::vector<std::string>;

// Finds the durable changes after a database's last transaction.
int find_pending(MDB_env* env, MDB_txn* txn, Pending* pending) {
  std::string incarnation, changes;
  RedoLog log;
  int error = log.find(env, txn);
  if (error == 0) error = read_incarnation(txn, &incarnation);
  if (error != 0) return error == -ENOENT ? 0 : error;
  for (uint64_t next = ::mdb_txn_id(txn) + 1; log.load(next, incarnation, &changes); next++) {
    pending->push_back(changes);
  }
  return 0;
}

int copy_backup(const std::string& backup, CompactCopy* copy, Pending* pending,
                std::string* reason) {
  LmdbFile file;
  if (const int error = file.open(backup, MDB_RDONLY, end_quietly)) return error;
  if (const int error = check_length(file.env(), reason)) return error;
  const int error = file.transact(MDB_RDONLY, [&](MDB_txn* txn) {
    const int failed = check_format(txn);
    return failed != 0 ? failed : find_pending(file.env(), txn, pending);
  });
  if (error != 0) return error == -ENOENT ? -EPROTO : error;
  return copy->write(file.env(), reason);
}

int begin_incarnation(const std::string& path, const Pending& pending) {
  LmdbFile file;
  if (const int error = file.open(path, 0, end_quietly)) return error;
  return file.transact(0, [&](MDB_txn* txn) {
    for (const std::string& changes : pending) {
      if (const int error = Redo::apply(changes, txn)) return error;
    }
    std::string incarnation;
    return put_new_incarnation(txn, &incarnation);
  });
}

// Reads everything in a database, and checks that its pages are consistent.
int verify(const std::string& path) {
  LmdbFile file;
  if (const int error = file.open(path, MDB_RDONLY, end_quietly)) return error;
  return file.transact(MDB_RDONLY, [](MDB_txn* txn) {
    MDB_stat stat{};
    if (const int result = ::mdb_stat(txn, kEntries, &stat)) return lmdb_errno(result);
    size_t entries = 0;
    std::string_view last;
    Cursor cursor(txn);
    while (cursor.next()) {
      const std::string_view data = cursor.value();
      const volatile char touched = data.empty() ? '\0' : data.back();
      static_cast<void>(touched);
      if (entries++ > 0 && cursor.key() <= last) return -EIO;
      last = cursor.key();
    }
    return cursor.error() == 0 && entries == stat.ms_entries ? 0 : -EIO;
  });
}

// Writes a copy that can be put in place.
int prepare(const std::string& backup, CompactCopy* copy, std::string* reason) {
  Pending pending;
  if (const int error = copy_backup(backup, copy, &pending, reason)) {
    return error == -EFAULT ? -EIO : error;  // a damaged page led it outside of the map
  }
  if (const int error = begin_incarnation(copy->path(), pending)) return error;
  return verify(copy->path());
}

// Calls `work(reason)` in a child process, because LMDB trusts the pages of a file and can crash on
// a damaged one. Returns the work's result, or EIO if a signal ended the child.
template <typename Work>
int in_child(const Work& work, std::string* reason) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -errno;
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // handlers of this process are not for the child
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_DUMPABLE, 0);  // no core file
    std::string more;
    const int answer = exception_barrier([&] { return work(&more); });
    more.insert(0, reinterpret_cast<const char*>(&answer), sizeof answer);
    ::_exit(::write(ends[1], more.data(), more.size()) < 0);
  }
  int error = child < 0 ? -errno : -EIO;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(ends[1]);
  int status = 0;
  while (child >= 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // The child has ended, and its answer fits into the pipe. One read is enough, and reading up to
  // the pipe's end could block, because another child of this process may have it open.
  char answer[PIPE_BUF];
  const ssize_t size = child < 0 ? 0 : ::read(ends[0], answer, sizeof answer);
  const std::string told(answer, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  ::close(ends[0]);
  if (child < 0) return error;
  if (told.size() >= sizeof error) {
    std::memcpy(&error, told.data(), sizeof error);
    *reason = told.substr(sizeof error);
  } else {
    *reason = "its pages are damaged";
    if (WIFSIGNALED(status)) *reason += std::string(": ") + ::strsignal(WTERMSIG(status));
  }
  return error;
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
  int failed = in_child([&](std::string* more) { return prepare(backup, &copy, more); }, reason);
  // The old sequencer's epochs and positions belong to the replaced state. Removing it loses
  // nothing.
  if (failed == 0 && ::unlink(sequencer.c_str()) != 0 && errno != ENOENT) failed = -errno;
  if (failed == 0) failed = copy.put_in_place(&locks, reason);
  if (!copy.in_place()) copy.remove();
  return failed;
}

}  // namespace zlog
