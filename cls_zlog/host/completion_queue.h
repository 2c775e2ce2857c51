#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "cls_zlog/base/buffer.h"

namespace zlog {

// The result of one operation: the submitter's token, and its outcome as a Done takes it.
struct Completion {
  uint64_t token;
  int code;
  Buffer reply;
};

// Results of submitted operations on their way from any thread to one consumer.
//
// Stores push from their own threads (librados' callbacks, the embedded store's workers) and never
// wait for the consumer. The consumer watches fileno(), an eventfd that is readable exactly while
// results wait, and takes all of them with one drain().
class CompletionQueue {
 public:
  // Throws std::system_error when no eventfd is to be had.
  CompletionQueue();
  ~CompletionQueue();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  int fileno() const { return event_fd_; }

  // Adds a result and, if it is the first one waiting, wakes the consumer. Any thread.
  void push(Completion completion);

  // All results that wait, in the order in which they came; empty when there are none. Does not
  // block.
  std::vector<Completion> drain();

  // Waits until results wait. False when `timeout_ms` (-1: none) has passed or a signal came.
  bool wait(int timeout_ms) const;

 private:
  const int event_fd_;
  std::mutex mutex_;
  std::vector<Completion> waiting_;
};

}  // namespace zlog
