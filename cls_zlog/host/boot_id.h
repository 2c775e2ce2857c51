#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <string>

namespace zlog {

constexpr size_t kBootIdBytes = 36;

// The id of this run of the kernel, as text; empty where it can't be read.
inline std::string boot_id() {
  const int fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string id(kBootIdBytes, '\0');
  const bool whole = ::read(fd, id.data(), id.size()) == static_cast<ssize_t>(id.size());
  ::close(fd);
  return whole ? id : std::string();
}

}  // namespace zlog
