#pragma once

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "cls_zlog/base/buffer.h"
#include "cls_zlog/host/file_descriptor.h"

namespace zlog {

// The result of one operation: the submitter's token, and the outcome as a Done receives it.
struct Completion {
  uint64_t token;
  int code;
  Buffer reply;
};

// Passes the results of operations from any thread to one consumer. The consumer watches fileno(),
// an eventfd that is readable while results wait, and takes all of them with one drain().
class CompletionQueue {
 public:
  // Throws std::system_error if the system has no eventfd left.
  CompletionQueue() : event_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_fd_ < 0)
      throw std::system_error(errno, std::generic_category(), "can't make an eventfd");
  }

  int fileno() const { return event_fd_; }

  // Adds a result, and wakes the consumer if the queue was empty. The eventfd is written and read
  // under the mutex, so it is readable if and only if the queue is not empty.
  void push(Completion completion) {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(std::move(completion));
    if (waiting_.size() == 1) ::eventfd_write(event_fd_, 1);
  }

  // Returns all waiting results in the order of their arrival. Does not block.
  std::vector<Completion> drain() {
    const std::lock_guard<std::mutex> lock(mutex_);
    eventfd_t count = 0;
    if (!waiting_.empty()) ::eventfd_read(event_fd_, &count);
    return std::exchange(waiting_, {});
  }

  // Waits for results. Returns false after `timeout_ms` (-1: no limit) or if a signal arrived.
  bool wait(int timeout_ms) const {
    pollfd poll_fd{event_fd_, POLLIN, 0};
    return ::poll(&poll_fd, 1, timeout_ms) > 0;
  }

 private:
  const FileDescriptor event_fd_;
  std::mutex mutex_;
  std::vector<Completion> waiting_;
};

}  // namespace zlog
