#include "cls_zlog/host/completion_queue.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace zlog {
namespace {

int open_event_fd() {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "can't make an eventfd");
  return fd;
}

}  // namespace

CompletionQueue::CompletionQueue() : event_fd_(open_event_fd()) {}

CompletionQueue::~CompletionQueue() { ::close(event_fd_); }

void CompletionQueue::push(Completion completion) {
  // The eventfd is written and read under the mutex, so that "readable" and "not empty" are one
  // state.
  const std::lock_guard<std::mutex> lock(mutex_);
  waiting_.push_back(std::move(completion));
  if (waiting_.size() == 1) ::eventfd_write(event_fd_, 1);
}

std::vector<Completion> CompletionQueue::drain() {
  std::vector<Completion> taken;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (waiting_.empty()) return taken;
  eventfd_t count = 0;
  ::eventfd_read(event_fd_, &count);
  taken.swap(waiting_);
  return taken;
}

bool CompletionQueue::wait(int timeout_ms) const {
  pollfd poll_fd{event_fd_, POLLIN, 0};
  return ::poll(&poll_fd, 1, timeout_ms) > 0;
}

}  // namespace zlog
