#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace zlog {

// Starts a thread that no signal is delivered to: Python wants them on its main thread, where they
// interrupt what it waits for.
template <typename Function>
std::thread start_quiet_thread(Function function) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread(std::move(function));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

}  // namespace zlog
