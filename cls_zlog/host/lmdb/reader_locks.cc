#include "cls_zlog/host/lmdb/reader_locks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace zlog {
namespace {

// The bytes that LMDB 0.9 locks: this one, shared, while it has the database open, alone while it
// makes the file anew; and the one whose number is the pid, alone, from the first reader on.
constexpr off_t kUse = 0;

constexpr off_t kOpening = off_t{1} << 32;  // above all pids

}  // namespace

LmdbLocks::~LmdbLocks() {
  if (fd_ < 0) return;
  drop();  // a forked child may have the open file too
  ::close(fd_);
}

int LmdbLocks::open(const std::string& path, bool create) {
  path_ = path;
  fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0666);
  if (fd_ < 0) return -errno;
  identity_ = identity_of(fd_);
  return 0;
}

bool LmdbLocks::in_place() const { return is_at(identity_, path_); }

int LmdbLocks::begin_opening() {
  if (const int error = lock_in_time(fd_, F_WRLCK, kOpening)) return error;
  return is_locked(fd_, ::getpid(), &pid_taken_);
}

void LmdbLocks::end_opening() { try_lock(fd_, F_UNLCK, kOpening); }

int LmdbLocks::keep() {
  if (const int error = lock_in_time(fd_, F_RDLCK, kUse)) return error;
  struct stat status{};
  // LMDB has left holes in the file: on a full disk, touching one kills the process (SIGBUS).
  if (::fstat(fd_, &status) == 0) ::posix_fallocate(fd_, 0, status.st_size);
  if (pid_taken_) return 0;
  struct flock of_process{};  // LMDB's, which is alone on its byte
  of_process.l_type = F_UNLCK;
  of_process.l_whence = SEEK_SET;
  of_process.l_start = ::getpid();
  of_process.l_len = 1;
  if (::fcntl(fd_, F_SETLK, &of_process) != 0) return -errno;
  return lock_in_time(fd_, F_WRLCK, ::getpid());
}

void LmdbLocks::drop() {
  try_lock(fd_, F_UNLCK, kUse);
  if (!pid_taken_) try_lock(fd_, F_UNLCK, ::getpid());
}

int LmdbLocks::take_alone() { return try_lock(fd_, F_WRLCK, kUse); }

}  // namespace zlog
