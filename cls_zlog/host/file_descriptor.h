#pragma once

#include <unistd.h>

#include <utility>

namespace zlog {

// Owns a file descriptor and closes it. -1 means that there is none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  operator int() const { return fd_; }

 private:
  int fd_;
};

}  // namespace zlog
