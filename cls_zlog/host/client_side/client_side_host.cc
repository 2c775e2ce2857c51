#include "cls_zlog/host/client_side/client_side_host.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <random>
#include <vector>

#include "cls_zlog/host/client_side/read_set.h"

namespace zlog {
namespace {

// The limits of calls that are written together.
constexpr size_t kGroupCalls = 64;
constexpr size_t kGroupBytes = 8u << 20;  // of payloads

// Each further page of a listing costs a round trip, so these pages are larger than the first one.
constexpr uint64_t kFurtherPages = 4;

constexpr size_t kCachedMax = 8192;  // objects

// Returns the pause before a change is repeated after a conflict. The first repetition follows at
// once. Later pauses are random, up to a limit that grows with the number of conflicts. Longer
// pauses would not raise the throughput, because one client always succeeds.
std::chrono::microseconds backoff(unsigned conflicts) {
  constexpr int64_t kMicroseconds = 500;
  constexpr unsigned kDoublings = 3;
  if (conflicts < 2) return {};
  static thread_local std::minstd_rand random{std::random_device()()};
  const auto most = kMicroseconds << std::min(conflicts - 2, kDoublings);
  return std::chrono::microseconds(std::uniform_int_distribution<int64_t>(0, most)(random));
}

}  // namespace

struct ClientSideHost::Call {
  std::string object;
  const Method* method;
  SharedRequest payload;
  Done done;
  Ticket ticket = kNoTicket;
  std::weak_ptr<Run> run = {};  // none while it waits
  int code = 0;                 // the method's
  std::string reply = {};

  void run_on(ReadSet* read_set) {
    code = run_method(*method, *read_set, payload->bytes(), &reply).code;
  }
};

// A call that is being read for, run or written, and the calls that joined it.
struct ClientSideHost::Run {
  std::string object;
  std::vector<CallPtr> calls;
  bool replica = false;
  ObjectVersion known;
  bool fresh = false;  // and not cached
  bool moved = false;  // the object has changed between two reads
  Reads asked;         // all reads, without the answers
  unsigned conflicts = 0;
  uint64_t steps = 0;       // operations of the store
  Ticket step = kNoTicket;  // the last of them
  bool changes() const { return (calls.front()->method->flags & kWrite) != 0; }
};

Ticket ClientSideHost::submit(std::string_view object, const Method& method, SharedRequest payload,
                              bool replica, Done done) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (closed_) {
    lock.unlock();
    return refuse(done, -ECANCELED);
  }
  const auto call = std::make_shared<Call>(
      Call{std::string(object), &method, std::move(payload), std::move(done), ++last_});
  calls_.emplace(call->ticket, call);
  if ((method.flags & kWrite) != 0) {
    const auto [line, idle] = lines_.try_emplace(call->object);
    if (!idle) {
      line->second.push_back(call);
      return call->ticket;
    }
  }
  const RunPtr run = make_run(call, replica);
  lock.unlock();
  begin(run);
  return call->ticket;
}

ClientSideHost::RunPtr ClientSideHost::make_run(const CallPtr& first, bool replica) {
  auto run = std::make_shared<Run>();
  run->object = first->object;
  run->calls = {first};
  run->replica = replica;
  first->run = run;
  return run;
}

void ClientSideHost::begin(const RunPtr& run) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto cached = cache_.find(run->object);
  if (cached != cache_.end()) {
    run->known = cached->second;
    lock.unlock();
    go_on(run);
  } else {
    lock.unlock();
    read(run, {});
  }
}

// Called with the mutex held. Caches an object's version and attributes; version 0 removes them.
void ClientSideHost::cache(const std::string& object, uint64_t version, const Attrs& attrs) {
  if (version == 0) {
    cache_.erase(object);
    return;
  }
  if (cache_.size() > kCachedMax) cache_.clear();
  ObjectVersion& known = cache_[object];
  if (version < known.version) return;  // a late reply
  known.version = version;
  known.attrs = attrs;
}

// Runs the first call on the known state of the object.
void ClientSideHost::go_on(const RunPtr& run) {
  ReadSet read_set(run->known);
  Call& first = *run->calls.front();
  first.run_on(&read_set);
  if (read_set.incomplete()) {
    read(run, read_set.take_missing());
  } else if (read_set.changed()) {
    join(run, &read_set);
    write(run, &read_set);
  } else if (!run->fresh) {
    read(run, {});  // the cached state may be out of date
  } else {
    finish(run, 0);
  }
}

void ClientSideHost::read(const RunPtr& run, Reads missing) {
  for (ListRead& list : missing.lists) {
    const bool further = !run->asked.lists.empty();
    list.count = std::min(list.count * (further ? kFurtherPages : 1), kListingMax);
  }
  // If the object has changed between two reads, everything is read again; otherwise the parts
  // might never have the same version. If bytes are read, so are the keys that locate them.
  Reads reads;
  if (run->moved) {
    reads = run->asked;
  } else if (!missing.stream.empty()) {
    reads = {run->asked.keys, run->asked.lists, {}};
  }
  reads.add(missing);
  run->asked.add(std::move(missing));
  take_step(run, [&] {
    return store_->read(run->object, std::move(reads), run->replica,
                        [self = shared_from_this(), run](int error, ObjectVersion known) {
                          self->was_read(run, error, std::move(known));
                        });
  });
}

void ClientSideHost::was_read(const RunPtr& run, int error, ObjectVersion known) {
  if (error < 0) {
    finish(run, error);
    return;
  }
  if (!run->replica || known.version == 0) {
    const std::lock_guard<std::mutex> lock(mutex_);
    cache(run->object, known.version, known.attrs);
  }
  if (known.version == run->known.version) {
    run->known.reads.add(std::move(known.reads));
    run->known.attrs = std::move(known.attrs);
  } else {
    run->moved = run->fresh;
    run->known = std::move(known);
  }
  run->fresh = true;
  go_on(run);
}

// Runs waiting calls on the same read set, as long as they need only attributes.
void ClientSideHost::join(const RunPtr& run, ReadSet* read_set) {
  size_t bytes = run->calls.front()->payload->size();
  while (run->calls.size() < kGroupCalls && bytes < kGroupBytes && read_set->exists()) {
    const CallPtr next = take_along(run, kGroupBytes - bytes);
    if (next == nullptr) return;
    next->run_on(read_set);
    if (read_set->incomplete()) {
      send_back(run);
      return;
    }
    bytes += next->payload->size();
  }
}

// Returns the next waiting call, or nullptr if none can be written together with the run's calls.
ClientSideHost::CallPtr ClientSideHost::take_along(const RunPtr& run, size_t bytes_max) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Line& waiting = lines_[run->object];
  if (waiting.empty()) return nullptr;
  CallPtr next = waiting.front();
  const bool same = next->method->flags == run->calls.front()->method->flags;
  if (!same || next->payload->size() > bytes_max) return nullptr;
  waiting.pop_front();
  next->run = run;
  run->calls.push_back(next);
  return next;
}

// Puts the last call that was taken along back to the front of the line.
void ClientSideHost::send_back(const RunPtr& run) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const CallPtr call = std::move(run->calls.back());
  run->calls.pop_back();
  call->run.reset();
  if (calls_.count(call->ticket) != 0) lines_[run->object].push_front(call);
}

void ClientSideHost::write(const RunPtr& run, ReadSet* read_set) {
  std::vector<Change> changes = read_set->take_changes();
  const bool exists = read_set->exists();
  take_step(run, [&] {
    return store_->write(run->object, run->known.version, std::move(changes),
                         run->calls.front()->method->flags,
                         [self = shared_from_this(), run, exists, attrs = read_set->take_attrs()](
                             int error, uint64_t version) {
                           {
                             const std::lock_guard<std::mutex> lock(self->mutex_);
                             self->cache(run->object, error == 0 && exists ? version : 0, attrs);
                           }
                           if (error == -ESTALE) {
                             self->repeat(run);
                           } else {
                             self->finish(run, error);
                           }
                         });
  });
}

// Ends the calls with this error or their methods' replies, and gives the turn to the next call.
void ClientSideHost::finish(const RunPtr& run, int error) {
  for (const CallPtr& call : run->calls) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (calls_.erase(call->ticket) == 0) continue;  // it was given up
    }
    call->done(error < 0 ? error : call->code,
               error < 0 ? Buffer() : Buffer::of(std::move(call->reply)));
  }
  if (!run->changes()) return;
  RunPtr next;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto line = lines_.find(run->object);
    Line& waiting = line->second;
    if (waiting.empty()) {
      lines_.erase(line);
    } else {
      next = make_run(waiting.front(), false);
      waiting.pop_front();
    }
  }
  if (next != nullptr) begin(next);
}

// Repeats a run after another client was faster.
void ClientSideHost::repeat(const RunPtr& run) {
  while (run->calls.size() > 1) send_back(run);
  run->known = {};
  run->fresh = false;
  run->asked = {};
  const auto pause = backoff(++run->conflicts);
  timer_.after(pause, [self = shared_from_this(), run] { self->read(run, {}); });
}

// Starts an operation of the store. Gives it up if its calls were given up in the meantime.
template <typename Start>
void ClientSideHost::take_step(const RunPtr& run, Start start) {
  uint64_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return;
    number = ++run->steps;
    run->step = kNoTicket;
  }
  const Ticket step = start();
  bool too_late = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (run->steps != number) return;  // it has ended already
    run->step = step;
    too_late = deserted(*run);
  }
  if (too_late) store_->give_up(step);
}

bool ClientSideHost::deserted(const Run& run) const {
  return std::none_of(run.calls.begin(), run.calls.end(),
                      [this](const CallPtr& call) { return calls_.count(call->ticket) != 0; });
}

void ClientSideHost::give_up(Ticket ticket) {
  CallPtr call;
  Ticket step = kNoTicket;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = calls_.find(ticket);
    if (found == calls_.end()) return;
    call = std::move(found->second);
    calls_.erase(found);
    if (const RunPtr run = call->run.lock(); run == nullptr) {
      Line& waiting = lines_[call->object];
      waiting.erase(std::find(waiting.begin(), waiting.end(), call));
    } else if (deserted(*run)) {
      step = run->step;
    }
  }
  if (step != kNoTicket) store_->give_up(step);
  call->done(-ECANCELED, {});
}

void ClientSideHost::close() {
  std::unordered_map<Ticket, CallPtr> given_up;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    calls_.swap(given_up);
    for (auto& [object, line] : lines_) line.clear();
  }
  timer_.stop();
  for (const auto& [ticket, call] : given_up) call->done(-ECANCELED, {});
}

}  // namespace zlog
