#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "cls_zlog/base/buffer.h"
#include "cls_zlog/host/async_host.h"
#include "cls_zlog/host/rados/librados.h"

namespace zlog {

// Takes over bytes that librados has allocated.
inline Buffer taken(char* bytes, size_t size) {
  if (bytes == nullptr) return {};
  return {{bytes, size}, std::shared_ptr<char>(bytes, librados().buffer_free)};
}

// The reply of a class's method.
struct ClassReply {
  ~ClassReply() { librados().buffer_free(bytes); }

  Buffer take() { return taken(std::exchange(bytes, nullptr), size); }

  char* bytes = nullptr;
  size_t size = 0;
  int code = 0;
};

class RadosCalls;

// One operation, from its start to its completion.
struct RadosCall {
  using Finish = std::function<void(int error, rados_completion_t completion)>;

  explicit RadosCall(Finish finish) : finish(std::move(finish)) {}
  ~RadosCall() { librados().aio_release(completion); }
  RadosCall(const RadosCall&) = delete;
  RadosCall& operator=(const RadosCall&) = delete;

  const Finish finish;
  Ticket ticket = kNoTicket;
  std::shared_ptr<RadosCalls> outstanding;
  rados_completion_t completion = nullptr;
};

// The operations that librados still has. Each of them shares it, since a callback may come after the
// host is gone.
class RadosCalls {
 public:
  void add(const std::shared_ptr<RadosCall>& call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    call->ticket = ++last_;
    calls_.emplace(call->ticket, call);
  }

  // Returns nullptr if the operation has ended.
  std::shared_ptr<RadosCall> find(Ticket ticket) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = calls_.find(ticket);
    return found == calls_.end() ? nullptr : found->second;
  }

  void remove(Ticket ticket) {
    std::shared_ptr<RadosCall> removed;  // destroyed without the mutex
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = calls_.find(ticket);
    removed = std::move(found->second);
    calls_.erase(found);
    if (calls_.empty()) none_left_.notify_all();
  }

  // Cancels all of them until none is left; false if some still are at the deadline. One that is just
  // being started can't be cancelled yet, hence the repetition.
  bool cancel_all(rados_ioctx_t io, std::chrono::steady_clock::time_point deadline) {
    for (;;) {
      for (const auto& [ticket, call] : snapshot()) librados().aio_cancel(io, call->completion);
      std::unique_lock<std::mutex> lock(mutex_);
      const auto none = [this] { return calls_.empty(); };
      if (none_left_.wait_for(lock, kCancelInterval, none)) return true;
      if (std::chrono::steady_clock::now() >= deadline) return false;
    }
  }

 private:
  using Calls = std::unordered_map<Ticket, std::shared_ptr<RadosCall>>;
  static constexpr std::chrono::milliseconds kCancelInterval{20};

  Calls snapshot() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return calls_;
  }

  std::mutex mutex_;
  std::condition_variable none_left_;
  Ticket last_ = kNoTicket;
  Calls calls_;
};

// Runs on a thread of librados.
inline void on_complete(rados_completion_t completion, void* argument) {
  auto* call = static_cast<RadosCall*>(argument);
  const std::shared_ptr<RadosCalls> outstanding = call->outstanding;
  call->finish(librados().aio_get_return_value(completion), completion);
  outstanding->remove(call->ticket);
}

// Starts an operation of librados: `start` passes it the completion. Returns what `start` returns; if
// that is an error, `finish` is never called.
template <typename Start>
int begin_call(const std::shared_ptr<RadosCalls>& outstanding, const Start& start,
               RadosCall::Finish finish, std::shared_ptr<RadosCall>* begun = nullptr) {
  const auto call = std::make_shared<RadosCall>(std::move(finish));
  call->outstanding = outstanding;
  librados().aio_create_completion2(call.get(), &on_complete, &call->completion);
  outstanding->add(call);
  const int error = start(call->completion);
  if (error != 0) outstanding->remove(call->ticket);
  if (begun != nullptr) *begun = call;
  return error;
}

}  // namespace zlog
