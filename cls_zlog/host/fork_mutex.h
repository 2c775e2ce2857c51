#pragma once

#include <pthread.h>

#include <mutex>

namespace zlog {

// A process-wide mutex, one for each `Tag`. fork() waits for it, so that in the child it is never
// held by a thread that exists only in the parent.
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
