#pragma once

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cls_zlog/host/completion_queue.h"
#include "cls_zlog/host/listing.h"
#include "cls_zlog/host/request_bytes.h"

namespace zlog {

// Takes the outcome of one operation: a negative errno (EOPNOTSUPP: no such method; EINVAL: an object
// without a name; ENOENT: no such object; nothing was applied), or the method's Code with its reply.
using Done = std::function<void(int code, Buffer reply)>;

// Names an operation under way to the host that carries it out.
using Ticket = uint64_t;

// Of an operation that is over already, or that can't be given up.
constexpr Ticket kNoTicket = 0;

// An operation that is to be started, as submit() takes it.
struct Submission {
  std::string_view object;
  std::string_view method;
  SharedRequest payload;
  Done done;
};

// A place where objects live and methods run on them, each as one atomic, isolated step. Every `done` is called exactly once: from a thread of the
// host, or from the caller's before the call returns. Names are copied where they are needed for
// longer; the payload is shared, and must not change any more.
class AsyncHost {
 public:
  virtual ~AsyncHost() = default;

  // Starts an operation on behalf of an event loop, which must not be held up.
  virtual Ticket submit(std::string_view object, std::string_view method, SharedRequest payload,
                        Done done) = 0;

  // Whether it carries operations out together that are started together. Else the first had better
  // be started before the next one is even encoded.
  virtual bool gathers() const { return false; }

  // Starts several operations at once, in their order.
  virtual void submit_all(std::vector<Submission> submissions) {
    for (Submission& each : submissions) {
      submit(each.object, each.method, std::move(each.payload), std::move(each.done));
    }
  }

  // Starts an operation on behalf of a thread that will wait for it, so that a host may as well use
  // it.
  virtual Ticket run(std::string_view object, std::string_view method, SharedRequest payload,
                     Done done) {
    return submit(object, method, std::move(payload), std::move(done));
  }

  // Lists the objects whose names begin with `prefix`, from where `after` says on: the `next` of
  // the page before, empty at first. The reply is the Listing, encoded.
  virtual void list(std::string_view prefix, std::string_view after, Done done) = 0;

  // Starts a method of Ceph's own class `lock`, where the host is Ceph.
  virtual Ticket lock(std::string_view /*object*/, std::string_view /*method*/,
                      SharedRequest /*payload*/, Done done) {
    done(-EOPNOTSUPP, {});
    return kNoTicket;
  }

  // Starts a method that only reads at one of the object's copies, chosen at random, where the host
  // keeps several: on Ceph. Every other call goes to the primary one. The reply begins with the
  // number of the process that answered (ReplicaAnswer).
  virtual void ask_replica(std::string_view /*object*/, std::string_view /*method*/,
                           SharedRequest /*payload*/, Done done) {
    done(-EOPNOTSUPP, {});
  }

  // Has Ceph's monitors run a command, where the host is Ceph. The command and the reply are JSON;
  // a failure's reply is the monitors' own words.
  virtual void ask_monitor(std::string_view /*command*/, Done done) { done(-EOPNOTSUPP, {}); }

  // Wakes all clients that watch an object, as far as there are means: a hint, which may be lost, or
  // come a moment later together with the next ones. Does not wait.
  virtual void notify(std::string_view /*object*/) {}

  // Waits until an object is notified. The reply is a number (number_reply), which each notification
  // changes: it comes as soon as that is another one than `seen`. It is never 0, so a wait with that
  // is over as soon as no later notification will be missed.
  virtual Ticket watch(std::string_view /*object*/, uint64_t /*seen*/, Done done) {
    done(-EOPNOTSUPP, {});
    return kNoTicket;
  }

  // Removes what watches need of an object, if there is anything; waits for it may fail.
  virtual void remove_watched(std::string_view /*object*/, Done done) { done(0, {}); }

  // Says that an operation's caller waits no more, so that nothing is kept for it: its `done` gets
  // ECANCELED, unless it is over. Whether it takes effect is unknown.
  virtual void give_up(Ticket) {}

  // Gives up what is outstanding (each `done` gets ECANCELED; whether such an operation took effect
  // is unknown) and lets go of the store. Takes a bounded time. Not to be used afterwards; a call
  // of another thread that comes too late is canceled too.
  virtual void close() = 0;
};

// Answers with a page of objects, or with the error that there was.
inline void answer_with_page(int error, const Listing& page, const Done& done) {
  done(error, error == 0 ? Buffer::of(page.encode()) : Buffer());
}

// A Done that puts the outcome into `queue` under `token`.
inline Done queue_completer(std::shared_ptr<CompletionQueue> queue, uint64_t token) {
  return [queue = std::move(queue), token](int code, Buffer reply) {
    queue->push({token, code, std::move(reply)});
  };
}

// The outcome that a blocking caller waits for. The operation shares it, so a caller may leave at
// any time.
class Pending {
 public:
  // A Done that completes `pending`.
  static Done completer(std::shared_ptr<Pending> pending) {
    return [pending = std::move(pending)](int code, Buffer reply) {
      pending->complete(code, std::move(reply));
    };
  }

  // Waits for the outcome for at most `timeout_ms`; false when it has not come.
  bool wait(int timeout_ms) {
    std::unique_lock<std::mutex> lock(mutex_);
    return arrived_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] { return done_; });
  }

  // The outcome, once wait() has returned true.
  int code() const { return code_; }
  const Buffer& reply() const { return reply_; }

  void complete(int code, Buffer reply) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      code_ = code;
      reply_ = std::move(reply);
      done_ = true;
    }
    arrived_.notify_all();  // without the mutex, which those who wake up take first
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  bool done_ = false;
  int code_ = 0;
  Buffer reply_;
};

}  // namespace zlog
