#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cls_zlog/base/buffer.h"
#include "cls_zlog/host/client_side/object_store.h"
#include "cls_zlog/host/rados/librados.h"
#include "cls_zlog/methods.h"

namespace zlog {

// Takes ownership of bytes that librados allocated.
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

// Runs operations on a cluster, for a RadosHost and its ClientSideHost. Operations in flight share
// ownership of this object, because librados may complete them after the host was destroyed.
class RadosIo final : public ObjectStore, public std::enable_shared_from_this<RadosIo> {
 public:
  // Passes an operation and its completion to librados.
  using Start = std::function<int(rados_ioctx_t io, rados_completion_t completion)>;
  using Finish = std::function<void(int error, rados_completion_t completion)>;

  explicit RadosIo(RadosHandle handle) : handle_(std::move(handle)), io_(handle_.get()) {}

  // Returns use(handle). close() waits for its end. Returns ECANCELED after stop().
  template <typename Use>
  int use(const Use& use) {
    const std::shared_lock<std::shared_mutex> lock(handle_mutex_);
    return stopping_ ? -ECANCELED : use(handle_);
  }

  // Starts an operation. `finish` receives its result, on a thread of librados or before this
  // function returns.
  Ticket begin(const Start& start, Finish finish);

  // Starts an operation and returns the result of `start`. If that is an error, `finish` is never
  // called. After stop(), this may be called only on behalf of an operation in flight.
  int try_begin(const Start& start, Finish finish) { return run(start, &finish, nullptr); }

  Ticket read(const std::string& object, Reads reads, bool replica, ReadDone done) override;
  Ticket write(const std::string& object, uint64_t version, std::vector<Change> changes, int flags,
               WriteDone done) override;
  void give_up(Ticket ticket) override;

  // Prevents new operations. Returns false if this was called before.
  bool stop() { return !stopping_.exchange(true); }

  // Cancels all operations and releases the handle, in a bounded time. Call stop() first.
  void close();

  // The handle is valid until close() was called and all operations under way have ended.
  rados_ioctx_t io() const { return io_; }

 private:
  struct Call;

  static void completed(rados_completion_t completion, void* argument);
  int run(const Start& start, Finish* finish, Ticket* ticket);
  void remove(Ticket ticket);
  bool cancel_all(std::chrono::steady_clock::time_point deadline);

  std::atomic<bool> stopping_{false};
  std::shared_mutex handle_mutex_;  // shared: using the handle; alone: ending it
  RadosHandle handle_;              // shares the connection, if that is our own
  void* const io_;                  // rados_ioctx_t
  std::mutex mutex_;
  std::condition_variable none_left_;
  Ticket last_ = kNoTicket;
  std::unordered_map<Ticket, std::shared_ptr<Call>> calls_;  // that librados still has
};

// Returns the flags that decide what an operation does on a full cluster. An operation that adds
// data waits for space, as is usual in RADOS. All others take effect, because trims free space.
// These include fills and changes of cursors, although they add a little data: a trim may have to
// wait for readers, which must be able to fill holes and to commit their cursors.
inline int flags_when_full(int method_flags) {
  return (method_flags & kAddsData) != 0 ? 0 : kFullForce;
}

}  // namespace zlog
