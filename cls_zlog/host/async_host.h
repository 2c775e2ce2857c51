#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "cls_zlog/host/completion_queue.h"
#include "cls_zlog/host/request_bytes.h"

namespace zlog {

// Receives the result of an operation. `code` is the method's Code, with its reply, or a negative
// errno if nothing was applied: EOPNOTSUPP if the method does not exist, EINVAL if the object's
// name is empty, and ENOENT if the object does not exist.
using Done = std::function<void(int code, Buffer reply)>;

// Identifies an operation under way, for give_up().
using Ticket = uint64_t;

// The ticket of an operation that has ended, or that can't be given up.
constexpr Ticket kNoTicket = 0;

// Reports an error for an operation that has not begun.
inline Ticket refuse(const Done& done, int error) {
  done(error, {});
  return kNoTicket;
}

// A method to run.
struct Submission {
  std::string_view object;
  std::string_view method;
  SharedRequest payload;
  Done done;
};

// A host stores objects and runs methods on them, each in one atomic, isolated step. It calls each
// operation's `done` callback exactly once, on one of its own threads or before the call that
// starts the operation returns. It shares the payload, so the caller must not change it afterwards.
class AsyncHost {
 public:
  virtual ~AsyncHost() = default;

  // Starts an operation without blocking.
  virtual Ticket submit(Submission submission) = 0;

  // Returns whether submit_all() carries out its operations together. If not, callers start each
  // operation before they encode the next one.
  virtual bool gathers() const { return false; }

  // Starts several operations at once, in their order.
  virtual void submit_all(std::vector<Submission> submissions) {
    for (Submission& each : submissions) submit(std::move(each));
  }

  // Starts an operation for a thread that will wait for it. The host may run it on this thread.
  virtual Ticket run(Submission submission) { return submit(std::move(submission)); }

  // Lists a page of the objects whose names begin with `prefix`. Pass an empty `after` for the
  // first page, and the previous reply's `next` for later pages. The reply is an encoded Listing.
  virtual void list(std::string_view prefix, std::string_view after, Done done) = 0;

  // Starts a method of Ceph's own class `lock`. Only on Ceph.
  virtual Ticket lock(Submission submission) { return refuse(submission.done, -EOPNOTSUPP); }

  // Starts a read-only method on a randomly chosen replica of the object. The reply begins with the
  // number of the process that stores it (replica_reply). Works only on Ceph.
  virtual void ask_replica(Submission submission) { refuse(submission.done, -EOPNOTSUPP); }

  // Runs a monitor command, which is written in JSON. The reply is JSON too, or the monitors' error
  // message if the command fails. Works only on Ceph.
  virtual void ask_monitor(std::string_view /*command*/, Done done) { refuse(done, -EOPNOTSUPP); }

  // Wakes the clients that watch an object, and returns without waiting for them. A notification is
  // only a hint: it can be lost, or merged with a later one.
  virtual void notify(std::string_view /*object*/) {}

  // Waits for a notification of an object. The host keeps a number above 0 for each object, and
  // each notification changes it. The wait ends once this number differs from `seen`, and returns
  // the number (number_reply). If `seen` is 0, the wait ends as soon as the host receives the
  // object's notifications, so that the caller misses no later one.
  virtual Ticket watch(std::string_view /*object*/, uint64_t /*seen*/, Done done) {
    return refuse(done, -EOPNOTSUPP);
  }

  // Removes what the host created to watch an object. Waits for the object may then fail.
  virtual void remove_watched(std::string_view /*object*/, Done done) { done(0, {}); }

  // Gives up an operation, which may still take effect. If it has not ended yet, its `done`
  // callback receives ECANCELED.
  virtual void give_up(Ticket) {}

  // Gives up all operations in flight and releases the store, within a bounded time. Operations
  // that are started later receive ECANCELED.
  virtual void close() = 0;
};

// Returns a Done that puts the outcome into `queue` under `token`.
inline Done queue_completer(std::shared_ptr<CompletionQueue> queue, uint64_t token) {
  return [queue = std::move(queue), token](int code, Buffer reply) {
    queue->push({token, code, std::move(reply)});
  };
}

// An outcome for a blocking caller, which may stop waiting for it at any time.
class Pending {
 public:
  // Returns a Done that completes `pending`.
  static Done completer(std::shared_ptr<Pending> pending) {
    return [pending = std::move(pending)](int code, Buffer reply) {
      pending->code_ = code;
      pending->reply_ = std::move(reply);
      pending->done_.set_value();
    };
  }

  // Waits for the outcome for at most `timeout_ms`. Returns whether it has come.
  bool wait(int timeout_ms) const {
    return arrived_.wait_for(std::chrono::milliseconds(timeout_ms)) == std::future_status::ready;
  }

  // These return the outcome. Valid once wait() has returned true.
  int code() const { return code_; }
  const Buffer& reply() const { return reply_; }

 private:
  std::promise<void> done_;
  const std::future<void> arrived_ = done_.get_future();
  int code_ = 0;
  Buffer reply_;
};

}  // namespace zlog
