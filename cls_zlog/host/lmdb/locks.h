#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "cls_zlog/host/file_descriptor.h"

// Locks on single bytes of a database's files, which show each user of the database which others
// exist. A lock belongs to an open file (F_OFD_SETLK) and not to a process, so it also works
// between handles of one process and ends with its owner. A shared lock needs only a read-only
// descriptor, even on a read-only file system. All calls return 0 or a negative errno.
namespace zlog {

inline struct flock byte_lock(short type, off_t byte) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

// Locks a byte in shared (F_RDLCK) or exclusive mode (F_WRLCK), or unlocks it (F_UNLCK), in place
// of any lock that this open file has on the byte. Returns EBUSY if others have locked the byte.
inline int try_lock(int fd, short type, off_t byte) {
  struct flock lock = byte_lock(type, byte);
  if (::fcntl(fd, F_OFD_SETLK, &lock) == 0) return 0;
  return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

// Like try_lock(), but waits up to some seconds for others to release the byte.
inline int lock_in_time(int fd, short type, off_t byte) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(5);
  for (;;) {
    const int error = try_lock(fd, type, byte);
    if (error != -EBUSY || Clock::now() >= deadline) return error;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// Finds out whether others hold any lock on a byte.
inline int is_locked(int fd, off_t byte, bool* locked) {
  struct flock lock = byte_lock(F_WRLCK, byte);
  if (::fcntl(fd, F_OFD_GETLK, &lock) != 0) return -errno;
  *locked = lock.l_type != F_UNLCK;
  return 0;
}

// An open file whose bytes are locked.
class LockedFile {
 public:
  int open(const std::string& path, int flags) {
    path_ = path;
    FileDescriptor opened(::open(path.c_str(), flags | O_CLOEXEC, 0666));
    if (opened < 0) return -errno;
    replace(std::move(opened));
    return 0;
  }

  void replace(FileDescriptor fd) {
    fd_ = std::move(fd);
    identity_ = {};
    identify(fd_, "", AT_EMPTY_PATH, &identity_);
  }

  // Returns whether the file is still the one at its path, as far as that can be found out.
  bool in_place() const {
    Identity there;
    const int error = identify(AT_FDCWD, path_.c_str(), 0, &there);
    return error == 0 ? identity_ == there : error != -ENOENT;
  }

  int fd() const { return fd_; }

 private:
  // Inode, major and minor of the device.
  using Identity = std::tuple<uint64_t, uint32_t, uint32_t>;

  // Identifies a file without reading its times. Once they are read, Linux records the next write's
  // time more precisely, which costs an entry in the file system's journal.
  static int identify(int fd, const char* path, int flags, Identity* found) {
    struct statx status{};
    if (::statx(fd, path, flags, STATX_INO, &status) != 0) return -errno;
    *found = {status.stx_ino, status.stx_dev_major, status.stx_dev_minor};
    return 0;
  }

  std::string path_;
  FileDescriptor fd_;
  Identity identity_;
};

// The locks on data.mdb.
//
// Readers register in lock.mdb, so that writers do not overwrite the pages that they read. A reader
// that cannot write lock.mdb, or does not find it, reads in glances instead. A glance is a
// transaction that is possible only while no process has the database open for writing.
class DatabaseLock {
 public:
  // Registers a user of the file. A writer creates a missing file, and waits for current glances to
  // end. Returns EBUSY, with an explanation in `reason`, if that takes more than a few seconds.
  int take(const std::string& path, bool writer, std::string* reason) {
    for (;;) {
      if (const int error = file_.open(path, writer ? O_RDWR | O_CREAT : O_RDONLY)) return error;
      const int error = take_shared(writer, reason);
      if (error != 0 || file_.in_place()) return error;  // else another file has replaced it
    }
  }

  bool in_place() const { return file_.in_place(); }

  // For a writer that replaces the file. Returns EBUSY if another process has it open.
  int take_alone() { return try_lock(file_.fd(), F_WRLCK, kUse); }

  // Ends take_alone().
  void share() { try_lock(file_.fd(), F_RDLCK, kUse); }

  // Takes the locks of a writer on the file that will replace this one.
  static int hold(int copy) {
    const int error = try_lock(copy, F_RDLCK, kUse);
    return error != 0 ? error : try_lock(copy, F_RDLCK, kWriting);
  }

  // Replaces the locked file by the one that has taken its place.
  void move_to(FileDescriptor copy) { file_.replace(std::move(copy)); }

  // Calls look() in a glance and returns its result. Glances can overlap. Returns ETXTBSY if a
  // process has the database open for writing.
  template <typename Look>
  int glance(const Look& look) {
    if (const int error = begin_glance()) return error;
    const std::shared_ptr<void> end(nullptr, [this](void*) { end_glance(); });
    return look();
  }

 private:
  // The numbers of the locked bytes. The contents of the file do not matter.
  static constexpr off_t kUse = 0;      // shared: has the database open; alone: replaces the file
  static constexpr off_t kWriting = 1;  // shared: has it open for writing; others only test for it
  static constexpr off_t kGlance = 2;  // shared: a glance; alone: a writer waits for the end of all

  int take_shared(bool writer, std::string* reason) {
    int error = lock_in_time(file_.fd(), F_RDLCK, kUse);
    if (error == -EBUSY) *reason = "it is being compacted";
    if (error != 0 || !writer) return error;
    error = try_lock(file_.fd(), F_RDLCK, kWriting);
    if (error != 0) return error;
    error = lock_in_time(file_.fd(), F_WRLCK, kGlance);
    if (error == -EBUSY) *reason = "a process that reads it (?mode=ro) is stopped in the middle";
    return error != 0 ? error : try_lock(file_.fd(), F_UNLCK, kGlance);
  }

  int begin_glance() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (glances_ == 0) {
      const int error = lock_in_time(file_.fd(), F_RDLCK, kGlance);
      if (error != 0) return error == -EBUSY ? -ETXTBSY : error;
    }
    // Check for writers only while holding the lock on kGlance. A writer locks kWriting before it
    // checks for glances, so at least one of the two sees the other.
    bool writers = false;
    int error = is_locked(file_.fd(), kWriting, &writers);
    if (error == 0 && writers) error = -ETXTBSY;
    if (error == 0) {
      glances_++;
    } else if (glances_ == 0) {
      try_lock(file_.fd(), F_UNLCK, kGlance);
    }
    return error;
  }

  void end_glance() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--glances_ == 0) try_lock(file_.fd(), F_UNLCK, kGlance);
  }

  LockedFile file_;
  std::mutex mutex_;
  size_t glances_ = 0;  // guarded by mutex_: the lock is one for all of them
};

// Holds LMDB's locks on lock.mdb, which LMDB itself could lose.
//
// LMDB's own locks belong to the process (F_SETLK), which loses them when it closes any descriptor
// of the file, for example after copying it. A process that opens the database later would then
// think that it is alone, and would initialize mutexes and the reader list that others are using.
// This class locks the same bytes, but its locks belong to an open file, so they are not lost.
//
// Call open() first. Then open the database in while_opening(), and call keep() there too. Call
// drop() before LMDB opens the database again.
class LmdbLocks {
 public:
  ~LmdbLocks() {
    if (file_.fd() >= 0) drop();  // a forked child may have the open file too
  }

  // Opens the file. Creates a missing file if `create` is set.
  int open(const std::string& path, bool create) {
    return file_.open(path, O_RDWR | (create ? O_CREAT : 0));
  }

  bool in_place() const { return file_.in_place(); }

  // Calls open() and returns its result. Meanwhile, other processes wait before they open the
  // database, because LMDB's locks are not held yet.
  template <typename Open>
  int while_opening(std::string* reason, const Open& open) {
    const int error = lock_in_time(file_.fd(), F_WRLCK, kOpening);
    if (error == -EBUSY) *reason = "a process that opens it has been stopped in the middle";
    if (error != 0) return error;
    const std::shared_ptr<void> end(nullptr,
                                    [this](void*) { try_lock(file_.fd(), F_UNLCK, kOpening); });
    const int failed = is_locked(file_.fd(), ::getpid(), &pid_taken_);
    return failed != 0 ? failed : open();
  }

  // Returns whether a process in another container has the same pid. LMDB registers readers by pid.
  bool pid_taken() const { return pid_taken_; }

  // Takes the same locks as LMDB. They show that the database is in use, and that this pid may be
  // in the list of readers.
  int keep() {
    if (const int error = lock_in_time(file_.fd(), F_RDLCK, kUse)) return error;
    struct stat status{};
    // LMDB leaves holes in the file: on a full disk, touching one kills the process (SIGBUS).
    if (::fstat(file_.fd(), &status) == 0) ::posix_fallocate(file_.fd(), 0, status.st_size);
    if (pid_taken_) return 0;
    struct flock of_process = byte_lock(F_UNLCK, ::getpid());  // LMDB's
    if (::fcntl(file_.fd(), F_SETLK, &of_process) != 0) return -errno;
    return lock_in_time(file_.fd(), F_WRLCK, ::getpid());
  }

  void drop() {
    try_lock(file_.fd(), F_UNLCK, kUse);
    if (!pid_taken_) try_lock(file_.fd(), F_UNLCK, ::getpid());
  }

  // Takes the lock that a writer needs to replace the database, which this process must have
  // closed. Returns EBUSY if a program that uses LMDB has it open.
  int take_alone() { return try_lock(file_.fd(), F_WRLCK, kUse); }

 private:
  // The bytes that LMDB 0.9 locks. A process locks kUse in shared mode while it has the database
  // open, and exclusively while it initializes the file. From its first reader on, it also locks
  // the byte whose number is its pid, exclusively.
  static constexpr off_t kUse = 0;
  static constexpr off_t kOpening = off_t{1} << 32;  // above all pids

  LockedFile file_;
  bool pid_taken_ = false;
};

}  // namespace zlog
