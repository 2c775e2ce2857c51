#pragma once

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cls_zlog/host/async_host.h"
#include "cls_zlog/host/signal_masked_thread.h"
#include "cls_zlog/methods.h"

namespace zlog {

// An operation that waits for its turn, and its result.
struct Operation {
  std::string object;
  const Method* method;
  SharedRequest payload;
  Done done;
  int code = 0;
  std::string reply = {};
};

// A thread that carries out operations in the order of their arrival, taking all waiting operations
// at once. The first operation starts it. Operations that arrive after stop() receive ECANCELED.
class Worker {
 public:
  // The thread calls `carry_out`, which must call each operation's `done` callback once. It must
  // own everything that it uses, because the thread may outlive the worker (see stop()).
  using CarryOut = std::function<void(std::vector<Operation>& batch)>;
  explicit Worker(CarryOut carry_out) : state_(std::make_shared<State>()) {
    state_->carry_out = std::move(carry_out);
  }
  ~Worker() { stop(); }

  // Operations that are pushed together are carried out together, within the limits of a batch.
  void push(std::vector<Operation> operations) {
    std::unique_lock<std::mutex> lock(state_->mutex);
    if (state_->stopping) {
      lock.unlock();
      cancel(operations);
      return;
    }
    if (!thread_.joinable()) {
      thread_ = start_signal_masked_thread([state = state_] { loop(state.get()); });
    }
    std::move(operations.begin(), operations.end(), std::back_inserter(state_->waiting));
    lock.unlock();
    state_->changed.notify_one();  // without the mutex, which the thread takes first
  }

  // Calls run(operations) in the caller's thread, and returns its result, a bool. Returns false
  // without the call if other operations are waiting or being carried out.
  template <typename Run>
  bool run_here(std::vector<Operation>& operations, const Run& run) {
    {
      const std::lock_guard<std::mutex> lock(state_->mutex);
      if (state_->stopping || state_->busy || !state_->waiting.empty()) return false;
      state_->busy = true;
    }
    const bool done = run(operations);
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->busy = false;
    if (state_->stopping || !state_->waiting.empty()) state_->changed.notify_all();
    return done;
  }

  // Cancels the operations that have not begun, and waits for the others, but only for a few
  // seconds, because a stopped process may hold the store's lock.
  void stop() {
    std::deque<Operation> given_up;
    std::unique_lock<std::mutex> lock(state_->mutex);
    if (std::exchange(state_->stopping, true)) return;
    state_->waiting.swap(given_up);
    state_->changed.notify_one();
    const auto finished = [this] {
      return (state_->finished || !thread_.joinable()) && !state_->busy;
    };
    const bool ended = state_->changed.wait_for(lock, kStopTimeout, finished);
    lock.unlock();
    if (thread_.joinable()) ended ? thread_.join() : thread_.detach();
    cancel(given_up);
  }

 private:
  static constexpr size_t kBatchBytes = 16u << 20;  // payload bytes after which a batch is closed
  static constexpr size_t kBatchOperations = 4096;
  static constexpr std::chrono::seconds kStopTimeout{5};

  struct State {
    CarryOut carry_out;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Operation> waiting;
    bool busy = false;  // some thread carries out operations
    bool stopping = false;
    bool finished = false;
  };

  template <typename Operations>
  static void cancel(const Operations& operations) {
    for (const Operation& operation : operations) operation.done(-ECANCELED, {});
  }

  static void loop(State* state) {
    std::vector<Operation> batch;
    std::unique_lock<std::mutex> lock(state->mutex);
    for (;;) {
      state->changed.wait(
          lock, [&] { return state->stopping || (!state->busy && !state->waiting.empty()); });
      if (state->stopping) break;
      for (size_t bytes = 0;
           !state->waiting.empty() && bytes < kBatchBytes && batch.size() < kBatchOperations;) {
        bytes += state->waiting.front().payload->size();
        batch.push_back(std::move(state->waiting.front()));
        state->waiting.pop_front();
      }
      state->busy = true;
      lock.unlock();
      state->carry_out(batch);
      batch.clear();
      lock.lock();
      state->busy = false;
    }
    state->finished = true;
    state->changed.notify_all();
  }

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace zlog
