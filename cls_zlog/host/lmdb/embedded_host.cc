#include "cls_zlog/host/lmdb/embedded_host.h"

#include <cerrno>
#include <chrono>
#include <utility>

#include "cls_zlog/host/exception_barrier.h"
#include "cls_zlog/host/large_blocks.h"
#include "cls_zlog/host/lmdb/object.h"
#include "cls_zlog/methods.h"

namespace zlog {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kDeadReadersInterval{60};

struct Answered {
  int code = 0;
  std::string reply;
};

bool writes(const Method& method) { return (method.flags & kWrite) != 0; }
bool adds_data(const Method& method) { return (method.flags & kAddsData) != 0; }

// Runs one operation in a transaction of its own.
int run_alone(LmdbEnv& env, std::string_view object, const Method& method, std::string_view payload,
              std::string* reply) {
  if (object.empty()) return -EINVAL;
  int code = 0;
  const auto work = [&](MDB_txn* txn, MDB_dbi dbi, Redo* changes = nullptr) {
    LmdbObject backing(txn, dbi, env.format(), object, changes);
    code = run_method(method, backing, payload, reply).code;
    return code < 0 ? code : 0;
  };
  const auto run = [&] {
    if (!writes(method)) return env.read(work);
    return !adds_data(method) || env.has_room_for(payload.size()) ? env.change(work) : -ENOSPC;
  };
  int error = exception_barrier(run);
  // It may just have been trimmed: room that comes into use one transaction later.
  if (error == -ENOSPC && exception_barrier([&] { return env.release_freed_pages(); }) == 0) {
    error = exception_barrier(run);
  }
  if (error == -ENOSPC && !adds_data(method)) {
    error = exception_barrier([&] { return env.run_with_reserve(run); });
  }
  if (error == 0) return code;
  reply->clear();
  return error;
}

// Runs all operations in one transaction, each seeing what those before it did. A refused one
// leaves no trace, as its writes were only buffered. An error means that none of them took effect.
int run_together(LmdbEnv& env, const std::vector<Operation>& batch,
                 std::vector<Answered>* results) {
  const auto work = [&](MDB_txn* txn, MDB_dbi dbi, Redo* changes) {
    for (size_t i = 0; i < batch.size(); i++) {
      Answered& result = (*results)[i];
      if (batch[i].object.empty()) {
        result.code = -EINVAL;
        continue;
      }
      LmdbObject backing(txn, dbi, env.format(), batch[i].object, changes);
      const Outcome outcome =
          run_method(*batch[i].method, backing, batch[i].payload->bytes(), &result.reply);
      if (outcome.broken) return outcome.code;
      result.code = outcome.code;
    }
    return 0;
  };
  size_t added = 0;
  for (const Operation& each : batch) added += adds_data(*each.method) ? each.payload->size() : 0;
  return exception_barrier([&] { return env.has_room_for(added) ? env.change(work) : -ENOSPC; });
}

void run_each(LmdbEnv& env, const std::vector<Operation>& batch, std::vector<Answered>* results) {
  for (size_t i = 0; i < batch.size(); i++) {
    Answered& result = (*results)[i];
    result.code =
        run_alone(env, batch[i].object, *batch[i].method, batch[i].payload->bytes(), &result.reply);
  }
}

void answer(std::vector<Operation>* batch, std::vector<Answered>* results) {
  for (size_t i = 0; i < batch->size(); i++) {
    (*batch)[i].done((*results)[i].code, Buffer::of(std::move((*results)[i].reply)));
  }
}

void write_batch(LmdbEnv& env, std::vector<Operation>* batch) {
  std::vector<Answered> results(batch->size());
  // What fails together (a full disk, a batch too large) may succeed one by one, and if not, the
  // error belongs to the operation that meets it.
  if (batch->size() == 1 || run_together(env, *batch, &results) != 0) {
    run_each(env, *batch, &results);
  }
  answer(batch, &results);
}

void read_batch(LmdbEnv& env, std::vector<Operation>* batch) {
  std::vector<Answered> results(batch->size());
  run_each(env, *batch, &results);
  answer(batch, &results);
}

}  // namespace

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
      writer_([env, checked = Clock::now()](std::vector<Operation>& batch) mutable {
        write_batch(*env, &batch);
        if (Clock::now() - checked < kDeadReadersInterval) return;
        env->forget_dead_readers();
        checked = Clock::now();
      }),
      reader_([env](std::vector<Operation>& batch) { read_batch(*env, &batch); }) {
  keep_large_blocks();
}

// A method that may run here: 0, or a negative errno.
int EmbeddedHost::find(std::string_view name, const Method** method) const {
  *method = find_method(name);
  if (*method == nullptr) return -EOPNOTSUPP;
  return read_only_ && writes(**method) ? -EROFS : 0;
}

Ticket EmbeddedHost::submit(std::string_view object, std::string_view method, SharedRequest payload,
                            Done done) {
  std::vector<Submission> alone;
  alone.push_back({object, method, std::move(payload), std::move(done)});
  submit_all(std::move(alone));
  return kNoTicket;
}

void EmbeddedHost::submit_all(std::vector<Submission> submissions) {
  std::vector<Operation> to_write, to_read;
  for (Submission& each : submissions) {
    const Method* found = nullptr;
    if (const int error = find(each.method, &found)) {
      each.done(error, {});
      continue;
    }
    (writes(*found) ? to_write : to_read)
        .push_back(
            {std::string(each.object), found, std::move(each.payload), std::move(each.done)});
  }
  if (!to_write.empty()) writer_.push(std::move(to_write));
  if (!to_read.empty()) reader_.push(std::move(to_read));
}

Ticket EmbeddedHost::run(std::string_view object, std::string_view method, SharedRequest payload,
                         Done done) {
  const Method* found = nullptr;
  int code = find(method, &found);
  if (code == 0 && writes(*found)) {
    return submit(object, method, std::move(payload), std::move(done));
  }
  std::string reply;
  if (code == 0) code = run_alone(*env_, object, *found, payload->bytes(), &reply);
  done(code, Buffer::of(std::move(reply)));
  return kNoTicket;
}

// In the caller's thread: a page is quick.
void EmbeddedHost::list(std::string_view prefix, std::string_view after, Done done) {
  Listing page;
  const int error = exception_barrier([&] {
    return env_->read(
        [&](MDB_txn* txn, MDB_dbi dbi) { return list_objects(txn, dbi, prefix, after, &page); });
  });
  answer_with_page(error, page, done);
}

int EmbeddedHost::compact(std::string* reason) {
  return read_only_ ? -EROFS : exception_barrier([&] { return env_->compact(reason); });
}

int EmbeddedHost::room_inside(uint64_t* bytes) {
  return exception_barrier([&] { return env_->room_inside(bytes); });
}

SharedNotifications* EmbeddedHost::notifications(bool make) {
  const std::lock_guard<std::mutex> lock(notifications_mutex_);
  if (make && !read_only_ && !std::exchange(notifications_tried_, true)) {
    std::shared_ptr<SharedSequencer> shared;
    if (SharedSequencer::open(directory_, &shared) == 0) {
      notifications_ = std::make_unique<SharedNotifications>(std::move(shared));
    }
  }
  return notifications_.get();
}

void EmbeddedHost::notify(std::string_view object) {
  if (SharedNotifications* shared = notifications(true)) shared->notify(object);
}

Ticket EmbeddedHost::watch(std::string_view object, uint64_t seen, Done done) {
  if (SharedNotifications* shared = notifications(true))
    return shared->wait(object, seen, std::move(done));
  return AsyncHost::watch(object, seen, std::move(done));
}

// Of what takes long here, only waits can be given up.
void EmbeddedHost::give_up(Ticket ticket) {
  if (ticket == kNoTicket) return;
  if (SharedNotifications* shared = notifications(false)) shared->give_up(ticket);
}

void EmbeddedHost::close() {
  if (SharedNotifications* shared = notifications(false)) shared->close();
  writer_.stop();
  reader_.stop();
}

}  // namespace zlog
