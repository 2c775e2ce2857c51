#pragma once

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <thread>
#include <utility>

namespace zlog {

// While it exists, this thread receives no signals.
class SignalMask {
 public:
  SignalMask() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalMask() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalMask(const SignalMask&) = delete;
  SignalMask& operator=(const SignalMask&) = delete;

 private:
  sigset_t before_;
};

// Starts a thread that receives no signals, so that Python's main thread receives them and they
// interrupt its waits. Throws std::system_error if the system allows no more threads.
template <typename Function>
std::thread start_signal_masked_thread(Function function) {
  const SignalMask mask;
  try {
    return std::thread(std::move(function));
  } catch (const std::system_error& error) {
    throw std::system_error(error.code(), "can't start a thread");
  }
}

}  // namespace zlog
