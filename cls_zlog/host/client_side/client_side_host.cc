#include "cls_zlog/host/client_side/client_side_host.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/host/client_side/backoff.h"
#include "cls_zlog/host/client_side/read_set.h"
#include "cls_zlog/host/client_side/version_cache.h"
#include "cls_zlog/host/timer.h"

namespace zlog {
namespace {

// What goes out together.
constexpr size_t kGroupCalls = 64;
constexpr size_t kGroupBytes = 8u << 20;  // of payloads

// Keys that an OSD lists at once, whatever was asked (osd_max_omap_entries_per_request).
constexpr uint64_t kListingMax = 1024;
// A method asks for a page once it has read the one before. Each page after the first is one more
// round trip, so it is made larger.
constexpr uint64_t kFurtherPages = 4;

struct Answer {
  int code;
  std::string reply;
};

}  // namespace

class PlainHost::Core : public std::enable_shared_from_this<Core> {
 public:
  explicit Core(Stock& stock) : stock_(stock) {}

  Ticket submit(std::string_view object, const Method& method, SharedRequest payload, bool copy,
                Done done);
  void give_up(Ticket ticket);
  void close();
  void settle();

 private:
  struct Run;
  struct Call {
    Ticket ticket;
    const Method* method;
    SharedRequest payload;
    Done done;
    std::string object;
    std::weak_ptr<Run> run;  // none while it waits
  };
  using CallPtr = std::shared_ptr<Call>;

  // Calls on their way through reading, running and writing: one, and those that joined it.
  struct Run {
    std::string object;
    std::vector<CallPtr> calls;
    bool copy = false;
    Seen seen;
    bool seen_now = false;  // and not remembered
    bool moved = false;     // the object has changed between two reads
    Reads asked;            // what was read so far, without the answers
    unsigned conflicts = 0;
    uint64_t steps = 0;       // operations of the stock so far
    Ticket step = kNoTicket;  // the last of them
    bool changes() const { return (calls.front()->method->flags & kWrite) != 0; }
  };
  using RunPtr = std::shared_ptr<Run>;

  // Calls that wait for their turn to change an object, on which a run is under way.
  using Line = std::deque<CallPtr>;

  RunPtr make_run(const CallPtr& first, bool copy);
  void begin(const RunPtr& run);
  void go_on(const RunPtr& run);
  void read(const RunPtr& run, Reads missing);
  void was_read(const RunPtr& run, int error, Seen seen);
  void join(const RunPtr& run, Draft* draft, std::vector<Answer>* answers);
  CallPtr take_along(const RunPtr& run, size_t bytes_max);
  void send_back(const RunPtr& run);
  void write(const RunPtr& run, Draft* draft, std::vector<Answer> answers);
  void was_written(const RunPtr& run, int error, std::vector<Answer> answers);
  void repeat(const RunPtr& run);
  void try_again(const RunPtr& run);
  void leave();
  void fail(const RunPtr& run, int error);
  void end(const RunPtr& run);
  void answer(const CallPtr& call, int code, std::string reply);
  template <typename Start>
  void take_step(const RunPtr& run, Start start);
  bool deserted(const Run& run) const;

  Stock& stock_;
  std::mutex mutex_;
  std::condition_variable left_;
  bool closed_ = false;
  unsigned inside_ = 0;  // threads that began a run or took it up again, and may use the stock
  Ticket last_ = kNoTicket;
  std::unordered_map<Ticket, CallPtr> calls_;    // that are not answered
  std::unordered_map<std::string, Line> lines_;  // of the objects that are being changed
  LastSeen last_seen_;
  Alarm alarm_;
};

namespace {

Answer run(const Method& method, const RequestBytes& payload, Draft* draft) {
  Answer answer;
  answer.code = run_method(method, *draft, payload.bytes(), &answer.reply).code;
  return answer;
}

}  // namespace

Ticket PlainHost::Core::submit(std::string_view object, const Method& method, SharedRequest payload,
                               bool copy, Done done) {
  const auto call = std::make_shared<Call>();
  call->method = &method;
  call->payload = std::move(payload);
  call->done = std::move(done);
  call->object = object;
  RunPtr run;
  bool closed = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    call->ticket = ++last_;
    closed = closed_;
    if (!closed) {
      calls_.emplace(call->ticket, call);
      if ((method.flags & kWrite) == 0) {
        run = make_run(call, copy);
      } else if (const auto [line, idle] = lines_.try_emplace(call->object); idle) {
        run = make_run(call, false);
      } else {
        line->second.push_back(call);
      }
      if (run != nullptr) inside_++;
    }
  }
  if (run != nullptr) {
    begin(run);
    leave();
  }
  if (closed) call->done(-ECANCELED, {});
  return call->ticket;
}

PlainHost::Core::RunPtr PlainHost::Core::make_run(const CallPtr& first, bool copy) {
  auto run = std::make_shared<Run>();
  run->object = first->object;
  run->calls = {first};
  run->copy = copy;
  first->run = run;
  return run;
}

void PlainHost::Core::begin(const RunPtr& run) {
  bool remembered = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    remembered = last_seen_.recall(run->object, &run->seen);
  }
  if (remembered) {
    go_on(run);
  } else {
    read(run, {});
  }
}

// Runs its first call on what has been seen.
void PlainHost::Core::go_on(const RunPtr& run) {
  Draft draft(stock_, run->seen);
  const Call& first = *run->calls.front();
  Answer found = zlog::run(*first.method, *first.payload, &draft);
  if (draft.in_vain()) {
    read(run, draft.take_missing());
  } else if (draft.changed()) {
    std::vector<Answer> answers;
    answers.push_back(std::move(found));
    join(run, &draft, &answers);
    write(run, &draft, std::move(answers));
  } else if (!run->seen_now) {
    read(run, {});  // what is remembered may be long over
  } else {
    answer(run->calls.front(), found.code, std::move(found.reply));
    end(run);
  }
}

void PlainHost::Core::read(const RunPtr& run, Reads missing) {
  for (ListRead& list : missing.lists) {
    const bool further = !run->asked.lists.empty();
    list.count = std::min(list.count * (further ? kFurtherPages : 1), kListingMax);
  }
  // Of an object that is changed all the time everything is asked again, or it would never be seen
  // as a whole. Before bytes are fetched, so is what tells where they are, which is little.
  Reads reads;
  if (run->moved) {
    reads = run->asked;
  } else if (!missing.stream.empty()) {
    reads = {run->asked.keys, run->asked.lists, {}};
  }
  reads.add(missing);
  run->asked.add(std::move(missing));
  take_step(run, [&] {
    return stock_.read(run->object, std::move(reads), run->copy,
                       [self = shared_from_this(), run](int error, Seen seen) {
                         self->was_read(run, error, std::move(seen));
                       });
  });
}

void PlainHost::Core::was_read(const RunPtr& run, int error, Seen seen) {
  if (error < 0) {
    fail(run, error);
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (seen.version == 0) {
      last_seen_.forget(run->object);
    } else if (!run->copy) {
      last_seen_.note(run->object, seen.version, seen.attrs);
    }
  }
  if (seen.version == run->seen.version) {
    run->seen.reads.add(std::move(seen.reads));
    run->seen.attrs = std::move(seen.attrs);
  } else {
    run->moved = run->seen_now;
    run->seen = std::move(seen);
  }
  run->seen_now = true;
  go_on(run);
}

// Takes along those that wait, as far as they need nothing but attributes.
void PlainHost::Core::join(const RunPtr& run, Draft* draft, std::vector<Answer>* answers) {
  size_t bytes = run->calls.front()->payload->size();
  while (answers->size() < kGroupCalls && bytes < kGroupBytes && draft->exists()) {
    const CallPtr next = take_along(run, kGroupBytes - bytes);
    if (next == nullptr) return;
    Answer found = zlog::run(*next->method, *next->payload, draft);
    if (draft->in_vain()) {
      send_back(run);
      return;
    }
    answers->push_back(std::move(found));
    bytes += next->payload->size();
  }
}

// The next call that waits; null if there is none that may be written together with the run's.
PlainHost::Core::CallPtr PlainHost::Core::take_along(const RunPtr& run, size_t bytes_max) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Line& waiting = lines_[run->object];
  if (waiting.empty()) return nullptr;
  CallPtr next = waiting.front();
  const bool alike = next->method->flags == run->calls.front()->method->flags;
  if (!alike || next->payload->size() > bytes_max) return nullptr;
  waiting.pop_front();
  next->run = run;
  run->calls.push_back(next);
  return next;
}

// Has the last call that was taken along wait again, ahead of all others.
void PlainHost::Core::send_back(const RunPtr& run) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const CallPtr call = std::move(run->calls.back());
  run->calls.pop_back();
  call->run.reset();
  if (calls_.count(call->ticket) != 0) lines_[run->object].push_front(call);
}

void PlainHost::Core::write(const RunPtr& run, Draft* draft, std::vector<Answer> answers) {
  std::unique_ptr<Changes> changes = draft->take_changes();
  const bool exists = draft->exists();
  take_step(run, [&] {
    return stock_.write(run->object, std::move(changes), run->calls.front()->method->flags,
                        [self = shared_from_this(), run, exists, attrs = draft->take_attrs(),
                         answers = std::move(answers)](int error, uint64_t version) mutable {
                          {
                            const std::lock_guard<std::mutex> lock(self->mutex_);
                            if (error == 0 && exists) {
                              self->last_seen_.note(run->object, version, attrs);
                            } else {
                              self->last_seen_.forget(run->object);
                            }
                          }
                          self->was_written(run, error, std::move(answers));
                        });
  });
}

void PlainHost::Core::was_written(const RunPtr& run, int error, std::vector<Answer> answers) {
  if (error == -ESTALE) {
    repeat(run);
  } else if (error < 0) {
    fail(run, error);
  } else {
    for (size_t i = 0; i < answers.size(); i++) {
      answer(run->calls[i], answers[i].code, std::move(answers[i].reply));
    }
    end(run);
  }
}

// Another client was faster.
void PlainHost::Core::repeat(const RunPtr& run) {
  while (run->calls.size() > 1) send_back(run);
  run->seen = {};
  run->seen_now = false;
  run->asked = {};
  const auto pause = pause_after(++run->conflicts);
  alarm_.after(pause, [self = shared_from_this(), run] { self->try_again(run); });
}

void PlainHost::Core::try_again(const RunPtr& run) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return;
    inside_++;
  }
  read(run, {});
  leave();
}

void PlainHost::Core::leave() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--inside_ == 0) left_.notify_all();
}

void PlainHost::Core::settle() {
  std::unique_lock<std::mutex> lock(mutex_);
  left_.wait(lock, [this] { return inside_ == 0; });
}

void PlainHost::Core::fail(const RunPtr& run, int error) {
  for (const CallPtr& call : run->calls) answer(call, error, {});
  end(run);
}

// Gives the turn to the next one.
void PlainHost::Core::end(const RunPtr& run) {
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

void PlainHost::Core::answer(const CallPtr& call, int code, std::string reply) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (calls_.erase(call->ticket) == 0) return;  // it was given up
  }
  call->done(code, Buffer::of(std::move(reply)));
}

// Starts an operation of the stock, and gives it up if no call waits for it any more: also one that
// was given up while it was being started.
template <typename Start>
void PlainHost::Core::take_step(const RunPtr& run, Start start) {
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
    if (run->steps != number) return;  // it is over already
    run->step = step;
    too_late = deserted(*run);
  }
  if (too_late) stock_.give_up(step);
}

bool PlainHost::Core::deserted(const Run& run) const {
  return std::none_of(run.calls.begin(), run.calls.end(),
                      [this](const CallPtr& call) { return calls_.count(call->ticket) != 0; });
}

void PlainHost::Core::give_up(Ticket ticket) {
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
  if (step != kNoTicket) stock_.give_up(step);
  call->done(-ECANCELED, {});
}

void PlainHost::Core::close() {
  std::unordered_map<Ticket, CallPtr> given_up;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    calls_.swap(given_up);
    for (auto& [object, line] : lines_) line.clear();
  }
  alarm_.stop();
  for (const auto& [ticket, call] : given_up) call->done(-ECANCELED, {});
}

PlainHost::PlainHost(Stock& stock) : core_(std::make_shared<Core>(stock)) {}
PlainHost::~PlainHost() {
  close();
  settle();
}
Ticket PlainHost::submit(std::string_view object, const Method& method, SharedRequest payload,
                         bool copy, Done done) {
  return core_->submit(object, method, std::move(payload), copy, std::move(done));
}
void PlainHost::give_up(Ticket ticket) { core_->give_up(ticket); }
void PlainHost::close() { core_->close(); }
void PlainHost::settle() { core_->settle(); }

}  // namespace zlog
