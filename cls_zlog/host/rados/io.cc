#include "cls_zlog/host/rados/io.h"

#include "cls_zlog/host/rados/object.h"

namespace zlog {
namespace {

constexpr std::chrono::seconds kCloseTimeout{5};
constexpr std::chrono::milliseconds kCancelInterval{20};

}  // namespace

struct RadosIo::Call {
  Call() = default;
  ~Call() { librados().aio_release(completion); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Finish finish;
  Ticket ticket = kNoTicket;
  std::shared_ptr<RadosIo> io;
  rados_completion_t completion = nullptr;
};

// Runs on a thread of librados.
void RadosIo::completed(rados_completion_t completion, void* argument) {
  auto* call = static_cast<Call*>(argument);
  const std::shared_ptr<RadosIo> self = call->io;
  call->finish(librados().aio_get_return_value(completion), completion);
  self->remove(call->ticket);
}

// Like try_begin(). Gives `finish` back if it will never be called.
int RadosIo::run(const Start& start, Finish* finish, Ticket* ticket) {
  const auto call = std::make_shared<Call>();
  call->finish = std::move(*finish);
  call->io = shared_from_this();
  librados().aio_create_completion2(call.get(), &completed, &call->completion);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    call->ticket = ++last_;
    calls_.emplace(call->ticket, call);
  }
  const int error = start(io_, call->completion);
  if (ticket != nullptr) *ticket = call->ticket;
  if (error == 0) return 0;
  *finish = std::move(call->finish);
  remove(call->ticket);
  return error;
}

void RadosIo::remove(Ticket ticket) {
  std::shared_ptr<Call> removed;  // destroyed without the mutex
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = calls_.find(ticket);
  removed = std::move(found->second);
  calls_.erase(found);
  if (calls_.empty()) none_left_.notify_all();
}

Ticket RadosIo::begin(const Start& start, Finish finish) {
  Ticket ticket = kNoTicket;
  const int error = use([&](const RadosHandle&) { return run(start, &finish, &ticket); });
  if (error != 0) finish(error, nullptr);
  return ticket;
}

Ticket RadosIo::read(const std::string& object, Reads reads, bool replica, ReadDone done) {
  const auto operation = std::make_shared<RadosRead>(std::move(reads));
  return begin(
      [&](rados_ioctx_t io, rados_completion_t completion) {
        return operation->start(io, completion, object, replica ? kBalanceReads : 0);
      },
      [operation, done = std::move(done)](int error, rados_completion_t completion) {
        if (error == 0) {
          done(0, operation->take(librados().aio_get_version(completion)));
        } else {
          done(error == -ENOENT ? 0 : error, {});
        }
      });
}

Ticket RadosIo::write(const std::string& object, uint64_t version, std::vector<Change> changes,
                      int flags, WriteDone done) {
  return begin(
      [&](rados_ioctx_t io, rados_completion_t completion) {
        const RadosOperation operation = operation_of(version, changes);
        return librados().aio_write_op_operate(operation.get(), io, completion, object.c_str(),
                                               nullptr, flags_when_full(flags));
      },
      [version, done = std::move(done)](int error, rados_completion_t completion) {
        done(error_of(version, error), error == 0 ? librados().aio_get_version(completion) : 0);
      });
}

void RadosIo::give_up(Ticket ticket) {
  use([&](const RadosHandle&) {
    std::shared_ptr<Call> call;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (const auto found = calls_.find(ticket); found != calls_.end()) call = found->second;
    }
    return call == nullptr ? 0 : librados().aio_cancel(io_, call->completion);
  });
}

void RadosIo::close() {
  const auto deadline = std::chrono::steady_clock::now() + kCloseTimeout;
  // First without the mutex: librados may block threads that start operations until others end.
  cancel_all(deadline);
  const std::unique_lock<std::shared_mutex> lock(handle_mutex_);
  // An operation that can't be cancelled may still complete: the handle stays open for it.
  if (!cancel_all(deadline)) new RadosHandle(handle_);
  handle_.reset();
}

// Cancels all operations, again and again until none are left, because an operation that is just
// being started cannot be cancelled yet. Returns false if some are left at the deadline.
bool RadosIo::cancel_all(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    const auto calls = calls_;
    lock.unlock();
    for (const auto& [ticket, call] : calls) librados().aio_cancel(io_, call->completion);
    lock.lock();
    const auto none = [this] { return calls_.empty(); };
    if (none_left_.wait_for(lock, kCancelInterval, none)) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
  }
}

}  // namespace zlog
