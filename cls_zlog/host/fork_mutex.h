#pragma once

#include <pthread.h>

#include <mutex>

namespace zlog {

// A mutex of the process, one for each `Tag`. A fork waits until it is free, so that no thread of
// the parent holds it in the child.
template <typename Tag>
std::mutex& fork_mutex() {
  static std::mutex mutex;
  static const int registered =
      ::pthread_atfork([] { fork_mutex<Tag>().lock(); }, [] { fork_mutex<Tag>().unlock(); },
                       [] { fork_mutex<Tag>().unlock(); });
  static_cast<void>(registered);
  return mutex;
}

}  // namespace zlog
