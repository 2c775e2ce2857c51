#pragma once

#include <pthread.h>

#include <mutex>

namespace zlog {

// A process-wide mutex, one for each `Tag`. fork() waits for it; otherwise the child could inherit
// a mutex that is held by a thread of the parent.
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
