#include "cls_zlog/host/lmdb/worker.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <utility>

#include "cls_zlog/host/signal_masked_thread.h"

namespace zlog {
namespace {

constexpr size_t kBatchBytes = 16u << 20;  // payload bytes after which a batch is closed
constexpr size_t kBatchOperations = 4096;
constexpr std::chrono::seconds kStopTimeout{5};

template <typename Operations>
void cancel(Operations* operations) {
  for (const Operation& operation : *operations) operation.done(-ECANCELED, {});
  operations->clear();
}

}  // namespace

struct Worker::State {
  explicit State(CarryOut carry_out) : carry_out(std::move(carry_out)) {}

  const CarryOut carry_out;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Operation> waiting;
  bool started = false;
  bool stopping = false;
  bool finished = false;
};

Worker::Worker(CarryOut carry_out) : state_(std::make_shared<State>(std::move(carry_out))) {}

Worker::~Worker() { stop(); }

void Worker::push(std::vector<Operation> operations) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  if (state_->stopping) {
    lock.unlock();
    cancel(&operations);
    return;
  }
  if (!state_->started) {
    thread_ = start_signal_masked_thread([state = state_] { loop(state); });
    state_->started = true;
  }
  std::move(operations.begin(), operations.end(), std::back_inserter(state_->waiting));
  lock.unlock();
  state_->changed.notify_one();  // without the mutex, which the thread takes first
}

void Worker::stop() {
  std::deque<Operation> given_up;
  std::unique_lock<std::mutex> lock(state_->mutex);
  if (state_->stopping) return;
  state_->stopping = true;
  state_->waiting.swap(given_up);
  state_->changed.notify_one();
  if (state_->started) {
    if (state_->changed.wait_for(lock, kStopTimeout, [this] { return state_->finished; })) {
      lock.unlock();
      thread_.join();
    } else {
      lock.unlock();
      thread_.detach();
    }
  } else {
    lock.unlock();
  }
  cancel(&given_up);
}

void Worker::loop(const std::shared_ptr<State>& state) {
  std::vector<Operation> batch;
  std::unique_lock<std::mutex> lock(state->mutex);
  for (;;) {
    state->changed.wait(lock, [&] { return state->stopping || !state->waiting.empty(); });
    if (state->stopping) break;
    for (size_t bytes = 0;
         !state->waiting.empty() && bytes < kBatchBytes && batch.size() < kBatchOperations;) {
      bytes += state->waiting.front().payload->size();
      batch.push_back(std::move(state->waiting.front()));
      state->waiting.pop_front();
    }
    lock.unlock();
    state->carry_out(batch);
    batch.clear();
    lock.lock();
  }
  state->finished = true;
  state->changed.notify_all();
}

}  // namespace zlog
