#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>

#include "cls_zlog/host/file_descriptor.h"

namespace zlog {

constexpr size_t kBootIdBytes = 36;

// Sets `id` to the kernel's current boot id, which has kBootIdBytes characters. Returns 0, or a
// negative errno and an id of zeros.
inline int read_boot_id(std::string* id) {
  id->assign(kBootIdBytes, '\0');
  const FileDescriptor fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (fd < 0) return -errno;
  if (::read(fd, id->data(), id->size()) == ssize_t{kBootIdBytes}) return 0;
  id->assign(kBootIdBytes, '\0');
  return -EIO;
}

}  // namespace zlog
