#include "cls_zlog/host/lmdb/database_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace zlog {
namespace {

// The bytes that are locked, whatever they hold.
constexpr off_t kUse = 0;  // shared: has the database open; alone: puts another file in its place
constexpr off_t kWriting = 1;  // shared: has it open for writing; only ever tested for, else
constexpr off_t kGlance = 2;   // shared: a glance; alone: a writer waits for the end of all

}  // namespace

DatabaseLock::~DatabaseLock() {
  if (fd_ >= 0) ::close(fd_);
}

int DatabaseLock::take(const std::string& path, bool writer, std::string* reason) {
  path_ = path;
  const int flags = writer ? O_RDWR | O_CREAT : O_RDONLY;
  for (;;) {
    fd_ = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    if (fd_ < 0) return -errno;
    identity_ = identity_of(fd_);
    const int error = take_shared(writer, reason);
    if (error != 0 || is_at(identity_, path)) return error;
    ::close(fd_);  // another file was put in its place meanwhile
  }
}

int DatabaseLock::take_shared(bool writer, std::string* reason) {
  if (const int error = lock_in_time(fd_, F_RDLCK, kUse)) {
    if (error == -EBUSY) *reason = "it is being compacted";
    return error;
  }
  if (!writer) return 0;
  if (const int error = try_lock(fd_, F_RDLCK, kWriting)) return error;
  if (const int error = lock_in_time(fd_, F_WRLCK, kGlance)) {
    if (error == -EBUSY)
      *reason = "a process that reads it (?mode=ro) has been stopped in the middle";
    return error;
  }
  return try_lock(fd_, F_UNLCK, kGlance);
}

int DatabaseLock::take_alone() { return try_lock(fd_, F_WRLCK, kUse); }

bool DatabaseLock::in_place() const { return is_at(identity_, path_); }

void DatabaseLock::share() { try_lock(fd_, F_RDLCK, kUse); }

int DatabaseLock::hold(int copy) {
  int error = try_lock(copy, F_RDLCK, kUse);
  if (error == 0) error = try_lock(copy, F_RDLCK, kWriting);
  return error;
}

void DatabaseLock::move_to(int copy) {
  ::close(fd_);
  fd_ = copy;
  identity_ = identity_of(copy);
}

int DatabaseLock::begin_glance() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (glances_ == 0) {
    const int error = lock_in_time(fd_, F_RDLCK, kGlance);
    if (error != 0) return error == -EBUSY ? -ETXTBSY : error;
  }
  // After its own lock, as a writer looks for glances after its own: one of the two sees the other.
  bool writers = false;
  int error = is_locked(fd_, kWriting, &writers);
  if (error == 0 && writers) error = -ETXTBSY;
  if (error == 0) {
    glances_++;
  } else if (glances_ == 0) {
    try_lock(fd_, F_UNLCK, kGlance);
  }
  return error;
}

void DatabaseLock::end_glance() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--glances_ == 0) try_lock(fd_, F_UNLCK, kGlance);
}

}  // namespace zlog
