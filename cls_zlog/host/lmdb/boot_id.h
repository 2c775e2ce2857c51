#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>

namespace zlog {

constexpr size_t kBootIdBytes = 36;

// Reads the id of this run of the kernel, kBootIdBytes of text. Returns 0 or a negative errno; then
// the id is all zeros.
inline int read_boot_id(std::string* id) {
  id->assign(kBootIdBytes, '\0');
  const int fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -errno;
  const bool whole = ::read(fd, id->data(), id->size()) == static_cast<ssize_t>(id->size());
  const int error = whole ? 0 : -EIO;
  ::close(fd);
  if (!whole) id->assign(kBootIdBytes, '\0');
  return error;
}

}  // namespace zlog
