#include "cls_zlog/host/lmdb/embedded_host.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include "cls_zlog/host/exception_barrier.h"
#include "cls_zlog/host/large_blocks.h"
#include "cls_zlog/host/lmdb/object.h"
#include "cls_zlog/host/signal_masked_thread.h"
#include "cls_zlog/methods.h"

namespace zlog {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kDeadReadersInterval{60};
constexpr std::chrono::milliseconds kQuick{1};
constexpr size_t kSmallBytes = 64 << 10;

bool writes(const Method& method) { return (method.flags & kWrite) != 0; }
bool adds_data(const Method& method) { return (method.flags & kAddsData) != 0; }

// Runs operations in one transaction. Either all of them write, or all of them only read. Each sees
// the changes of those before it. An operation that is refused changes nothing, because its writes
// were only buffered. If this returns an error, none of the operations took effect. If `wait` is
// false, returns EBUSY instead of waiting for another writer.
int run_together(LmdbEnv& env, Operation* operations, size_t count, bool wait = true) {
  const auto work = [&](MDB_txn* txn, Redo* changes = nullptr) {
    for (size_t i = 0; i < count; i++) {
      Operation& each = operations[i];
      each.code = -EINVAL;
      if (each.object.empty()) continue;
      const Outcome outcome = run_in_transaction(txn, env.format(), changes, each.object,
                                                 *each.method, each.payload->bytes(), &each.reply);
      if (outcome.broken || (count == 1 && outcome.code < 0)) return outcome.code;
      each.code = outcome.code;
    }
    return 0;
  };
  size_t added = 0;
  for (size_t i = 0; i < count; i++) {
    if (adds_data(*operations[i].method)) added += operations[i].payload->size();
  }
  return exception_barrier([&] {
    if (!writes(*operations->method)) return env.read(work);
    return added == 0 || env.has_space_for(added) ? env.change(work, wait) : -ENOSPC;
  });
}

// Runs an operation in a transaction of its own.
void run_alone(LmdbEnv& env, Operation* operation) {
  const auto run = [&] { return run_together(env, operation, 1); };
  int error = run();
  // Space that was just trimmed can be used one transaction later.
  if (error == -ENOSPC && exception_barrier([&] { return env.release_freed_pages(); }) == 0) {
    error = run();
  }
  if (error == -ENOSPC && !adds_data(*operation->method)) {
    error = exception_barrier([&] { return env.run_with_reserve(run); });
  }
  if (error == 0) return;
  operation->code = error;
  operation->reply.clear();
}

void run_each(LmdbEnv& env, std::vector<Operation>& batch) {
  for (Operation& each : batch) run_alone(env, &each);
}

void answer(std::vector<Operation>& batch) {
  for (Operation& each : batch) each.done(each.code, Buffer::of(std::move(each.reply)));
}

}  // namespace

// Carries out batches of writes, one at a time.
class EmbeddedHost::Writes {
 public:
  explicit Writes(std::shared_ptr<LmdbEnv> env) : env_(std::move(env)) {}

  void carry_out(std::vector<Operation>& batch) {
    const auto began = Clock::now();
    // Operations that fail together (because the disk is full or the batch is too large) may
    // succeed one by one. Running them separately also shows which one causes the error.
    if (batch.size() == 1 || run_together(*env_, batch.data(), batch.size()) != 0)
      run_each(*env_, batch);
    finish(batch, began);
  }

  // Does the same in the caller's thread. Returns false, and changes nothing, if this could take
  // long or fails.
  bool carry_out_at_once(std::vector<Operation>& batch) {
    size_t bytes = 0;
    for (const Operation& each : batch) bytes += each.payload->size();
    if (!quick_ || bytes > kSmallBytes) return false;
    const SignalMask mask;  // a signal could interrupt a sync, or this thread while it has the lock
    const auto began = Clock::now();
    if (run_together(*env_, batch.data(), batch.size(), false) != 0) return false;
    finish(batch, began);
    return true;
  }

 private:
  void finish(std::vector<Operation>& batch, Clock::time_point began) {
    const auto now = Clock::now();
    quick_ = now - began < kQuick;
    answer(batch);
    if (now - checked_ < kDeadReadersInterval) return;
    env_->forget_dead_readers();
    checked_ = now;
  }

  const std::shared_ptr<LmdbEnv> env_;
  Clock::time_point checked_ = Clock::now();
  bool quick_ = false;  // whether the last batch took little time
};

int EmbeddedHost::open(const std::string& directory, size_t map_bytes, bool read_only,
                       std::unique_ptr<EmbeddedHost>* host, std::string* reason) {
  std::shared_ptr<LmdbEnv> env;
  if (const int error = LmdbEnv::open(directory, map_bytes, read_only, &env, reason)) {
    return error;
  }
  host->reset(new EmbeddedHost(env, directory, read_only));
  return 0;
}

EmbeddedHost::EmbeddedHost(const std::shared_ptr<LmdbEnv>& env, std::string directory,
                           bool read_only)
    : env_(env),
      directory_(std::move(directory)),
      read_only_(read_only),
      writes_(std::make_shared<Writes>(env)),
      writer_([writes = writes_](std::vector<Operation>& batch) { writes->carry_out(batch); }),
      reader_([env](std::vector<Operation>& batch) {
        run_each(*env, batch);
        answer(batch);
      }) {
  keep_large_blocks();
}

// Finds a method that may run here. Returns 0 or a negative errno.
int EmbeddedHost::find(std::string_view name, const Method** method) const {
  *method = find_method(name);
  if (*method == nullptr) return -EOPNOTSUPP;
  return read_only_ && writes(**method) ? -EROFS : 0;
}

Ticket EmbeddedHost::submit(Submission submission) {
  std::vector<Submission> alone;
  alone.push_back(std::move(submission));
  submit_all(std::move(alone));
  return kNoTicket;
}

void EmbeddedHost::submit_all(std::vector<Submission> submissions) {
  std::vector<Operation> to_write, to_read;
  for (Submission& each : submissions) {
    const Method* found = nullptr;
    if (const int error = find(each.method, &found)) {
      refuse(each.done, error);
      continue;
    }
    (writes(*found) ? to_write : to_read)
        .push_back(
            {std::string(each.object), found, std::move(each.payload), std::move(each.done)});
  }
  const auto at_once = [this](auto& batch) { return writes_->carry_out_at_once(batch); };
  if (!to_write.empty() && !writer_.run_here(to_write, at_once)) writer_.push(std::move(to_write));
  if (!to_read.empty()) reader_.push(std::move(to_read));
}

Ticket EmbeddedHost::run(Submission submission) {
  const Method* found = nullptr;
  if (const int error = find(submission.method, &found)) return refuse(submission.done, error);
  if (writes(*found)) return submit(std::move(submission));
  Operation operation = {std::string(submission.object), found, std::move(submission.payload), {}};
  run_alone(*env_, &operation);
  submission.done(operation.code, Buffer::of(std::move(operation.reply)));
  return kNoTicket;
}

// Runs in the caller's thread, since listing a page is fast.
void EmbeddedHost::list(std::string_view prefix, std::string_view after, Done done) {
  Listing page;
  const int error = exception_barrier([&] {
    return env_->read([&](MDB_txn* txn) { return list_objects(txn, prefix, after, &page); });
  });
  page.answer(error, done);
}

int EmbeddedHost::compact(std::string* reason) {
  return read_only_ ? -EROFS : exception_barrier([&] { return env_->compact(reason); });
}

int EmbeddedHost::space_inside(uint64_t* bytes) {
  return exception_barrier([&] { return env_->space_inside(bytes); });
}

// Returns nullptr if there is no shared memory. If `make` is set, opens it once.
std::shared_ptr<SharedNotifications> EmbeddedHost::notifications(bool make) {
  const std::lock_guard<std::mutex> lock(notifications_mutex_);
  if (make && !read_only_ && !std::exchange(notifications_tried_, true)) {
    std::shared_ptr<SharedSequencer> shared;
    if (SharedSequencer::open(directory_, &shared) == 0) {
      notifications_ = std::make_shared<SharedNotifications>(std::move(shared));
    }
  }
  return notifications_;
}

void EmbeddedHost::notify(std::string_view object) {
  if (const auto shared = notifications(true)) shared->notify(object);
}

Ticket EmbeddedHost::watch(std::string_view object, uint64_t seen, Done done) {
  const auto shared = notifications(true);
  return shared ? shared->wait(object, seen, std::move(done)) : refuse(done, -EOPNOTSUPP);
}

// Only waits can be given up, since nothing else takes long here.
void EmbeddedHost::give_up(Ticket ticket) {
  if (ticket == kNoTicket) return;
  if (const auto shared = notifications(false)) shared->give_up(ticket);
}

void EmbeddedHost::close() {
  if (const auto shared = notifications(false)) shared->close();
  writer_.stop();
  reader_.stop();
}

}  // namespace zlog
