#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

namespace zlog {

// Locks on single bytes of a file that belong to the open file (F_OFD_SETLK) and not to the
// process.

// Takes (F_RDLCK: shared, F_WRLCK: alone) or gives back (F_UNLCK) a byte; what was held of it
// before is exchanged for that. Answers 0 or a negative errno: EBUSY when others hold it.
inline int try_lock(int fd, short type, off_t byte) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  if (::fcntl(fd, F_OFD_SETLK, &lock) == 0) return 0;
  return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

// Does so as soon as others let it; EBUSY when they have not within some seconds.
inline int lock_in_time(int fd, short type, off_t byte) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(5);
  for (;;) {
    const int error = try_lock(fd, type, byte);
    if (error != -EBUSY || Clock::now() >= deadline) return error;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// Whether others hold a byte, in whatever way. Needs no more than a file that is open for reading.
inline int is_locked(int fd, off_t byte, bool* locked) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  if (::fcntl(fd, F_OFD_GETLK, &lock) != 0) return -errno;
  *locked = lock.l_type != F_UNLCK;
  return 0;
}

// Which file it is, on this machine.
struct FileIdentity {
  uint64_t inode = 0;
  uint32_t major = 0, minor = 0;

  bool operator==(const FileIdentity& other) const {
    return inode == other.inode && major == other.major && minor == other.minor;
  }
};

// Answers 0 or a negative errno. Asks for no times: Linux gives a file whose times were looked at
// finer ones at its next write, each of which then costs a record in the journal (100 us on ext4).
inline int identify(int fd, const char* path, int flags, FileIdentity* found) {
  struct statx status{};
  if (::statx(fd, path, flags, STATX_INO, &status) != 0) return -errno;
  *found = {status.stx_ino, status.stx_dev_major, status.stx_dev_minor};
  return 0;
}

// That of an open file, which never changes; none where it can't be found out.
inline FileIdentity identity_of(int fd) {
  FileIdentity found;
  identify(fd, "", AT_EMPTY_PATH, &found);
  return found;
}

// Whether the file that `path` names is this one. Not where the path can't be looked at.
inline bool is_at(const FileIdentity& held, const std::string& path) {
  FileIdentity there;
  const int error = identify(AT_FDCWD, path.c_str(), 0, &there);
  return error == 0 ? held == there : error != -ENOENT;
}

}  // namespace zlog
