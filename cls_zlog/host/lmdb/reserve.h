#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "cls_zlog/host/file_descriptor.h"
#include "cls_zlog/host/lmdb/file.h"

namespace zlog {

// Disk space that is reserved for removals. Even a removal needs some new pages, because LMDB never
// changes a page in place. On a full disk, the reserve is freed for one transaction, and allocated
// again as soon as there is space. All processes share it.
class Reserve {
 public:
  // Opens the reserve in a directory, and creates it if it is missing.
  void open(const std::string& directory) {
    fd_ = FileDescriptor(
        ::open((directory + "/reserve").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (fd_ < 0) return;
    share_as_database(fd_, directory);
    make();
  }

  // Returns whether the reserve has its full size. Also true if the store has no reserve.
  bool whole() const {
    struct stat status{};
    return fd_ < 0 || ::fstat(fd_, &status) != 0 || status.st_size >= kBytes;
  }

  // Allocates as much space as the disk has. Returns whether the reserve has its full size.
  bool make() {
    for (off_t bytes = kBytes; bytes > 0; bytes -= kStepBytes) {
      if (::posix_fallocate(fd_, 0, bytes) == 0) return bytes == kBytes;
    }
    return false;
  }

  void give_up() {
    if (fd_ >= 0 && ::ftruncate(fd_, 0) != 0) return;  // the removal may fail
  }

 private:
  static constexpr off_t kBytes = off_t{512} << 10;
  static constexpr off_t kStepBytes = off_t{32} << 10;

  FileDescriptor fd_;
};

}  // namespace zlog
