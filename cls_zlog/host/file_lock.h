#pragma once

#include <fcntl.h>

#include <cerrno>

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

}  // namespace zlog
