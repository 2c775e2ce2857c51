// The client-side host against a cluster that does one operation at a time, in an order that the test
// draws: so every conflict between clients comes up, also those that take a whole cluster years.

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <future>
#include <list>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/host/client_side/client_side_host.h"

namespace {

using namespace zlog;

struct StoredObject {
  uint64_t version = 0;
  Attrs attrs;
  std::map<std::string, std::string> keys;
  std::string stream;
};

void make(const Change& change, StoredObject* object) {
  switch (change.kind) {
    case Change::Kind::kRemove:
      *object = {};
      break;
    case Change::Kind::kAttrSet:
      object->attrs[change.key] = change.value;
      break;
    case Change::Kind::kOmapSet:
      object->keys[change.key] = change.value;
      break;
    case Change::Kind::kOmapRemove:
      object->keys.erase(change.key);
      break;
    case Change::Kind::kWrite:
      object->stream.resize(
          std::max<size_t>(object->stream.size(), change.offset + change.data.size()));
      object->stream.replace(change.offset, change.data.size(), change.data);
      break;
    default:
      break;
  }
}

bool changes_keys(const Change& change) {
  return change.kind == Change::Kind::kOmapSet || change.kind == Change::Kind::kOmapRemove;
}

// One object, and the operations on it that are under way. A host's own thread, which repeats after
// a pause, uses it beside the test's.
class Cluster final : public ObjectStore {
 public:
  explicit Cluster(unsigned seed) : random_(seed) {}

  Ticket read(const std::string&, Reads reads, bool, ReadDone done) override {
    return add([=, this_reads = std::move(reads)](int error) {
      ObjectVersion known;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        reads_++;
        if (error == 0 && object_.version != 0) known = look(this_reads);
      }
      done(error, std::move(known));
    });
  }
  Ticket write(const std::string&, uint64_t version, std::vector<Change> changes, int,
               WriteDone done) override {
    CHECK(std::none_of(changes.begin(), changes.end(),
                       [](const Change& each) { return each.kind == Change::Kind::kAttrSet; }) ||
          std::any_of(changes.begin(), changes.end(), changes_keys));
    // Data is copied, as a store does.
    std::vector<std::string> data;
    data.reserve(changes.size());
    for (const Change& each : changes) data.emplace_back(each.data);
    return add([=](int error) {
      uint64_t now = 0;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        writes_++;
        // A reply that is lost: the change is made, or not.
        if (error == 0 || draw(2) == 0) {
          const int result = apply(version, changes, data);
          if (error == 0) error = result;
        }
        now = object_.version;
      }
      done(error, now);
    });
  }
  void give_up(Ticket ticket) override {
    std::function<void(int)> operation;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = under_way_.find(ticket);
      if (found == under_way_.end()) return;
      operation = std::move(found->second);
      under_way_.erase(found);
    }
    operation(-ECANCELED);
  }

  // Does one of the operations that are under way; false if there is none.
  bool step() {
    std::function<void(int)> operation;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (under_way_.empty()) return false;
      const auto drawn = std::next(under_way_.begin(), static_cast<long>(draw(under_way_.size())));
      operation = std::move(drawn->second);
      under_way_.erase(drawn);
    }
    operation(0);
    return true;
  }

  template <typename Condition>
  void step_until(const Condition& condition) {
    while (!condition()) {
      if (!step()) std::this_thread::yield();  // a pause after a conflict
    }
  }

  bool chance(unsigned of) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return draw(of) == 0;
  }
  StoredObject& object() { return object_; }
  int reads() const { return reads_; }
  int writes() const { return writes_; }

 private:
  Ticket add(std::function<void(int)> operation) {
    const std::lock_guard<std::mutex> lock(mutex_);
    under_way_[++last_] = std::move(operation);
    return last_;
  }
  size_t draw(size_t of) { return random_() % of; }
  ObjectVersion look(Reads reads) const {
    for (KeyRead& read : reads.keys) {
      const auto found = object_.keys.find(read.key);
      read.found = found != object_.keys.end();
      if (read.found) read.value = found->second;
    }
    for (ListRead& list : reads.lists) {
      auto at = object_.keys.upper_bound(list.after);
      for (; at != object_.keys.end() && list.page.size() < list.count; ++at) {
        list.page[at->first] = Buffer::of(at->second);
      }
      list.more = at != object_.keys.end();
    }
    for (StreamRead& read : reads.stream) {
      read.bytes = Buffer::of(object_.stream.substr(read.offset, read.length));
    }
    return {object_.version, object_.attrs, std::move(reads)};
  }
  int apply(uint64_t version, std::vector<Change> changes, const std::vector<std::string>& data) {
    if (version != object_.version) return -ESTALE;
    for (size_t i = 0; i < changes.size(); i++) {
      changes[i].data = data[i];
      make(changes[i], &object_);
    }
    object_.version = ++last_version_;
    return 0;
  }

  std::minstd_rand random_;
  std::mutex mutex_;
  Ticket last_ = kNoTicket;
  std::map<Ticket, std::function<void(int)>> under_way_;
  StoredObject object_;
  uint64_t last_version_ = 0;
  int reads_ = 0;
  int writes_ = 0;
};

// A cluster that hosts share, and the operations that are left in it at the end share them.
struct SharedCluster : std::shared_ptr<Cluster> {
  explicit SharedCluster(unsigned seed) : shared_ptr(std::make_shared<Cluster>(seed)) {}
  ~SharedCluster() {
    while (get()->step()) {
    }
  }
  SharedCluster(const SharedCluster&) = delete;
  SharedCluster& operator=(const SharedCluster&) = delete;
};

uint64_t number_of(const std::string& text) { return text.empty() ? 0 : std::stoull(text); }

// Counts in the attribute, in a key and in the bytestream, and answers the number. With "look" it
// reads what it has to add to in all three, with "once" it leaves alone what is there.
int count(Object& object, std::string_view in, std::string* out) {
  std::string value;
  if (const int r = object.attr_get("n", &value); r < 0 && r != -ENODATA) return r;
  if (in == "once" && !value.empty()) {
    *out = value;
    return 0;
  }
  if (in == "look" && !value.empty()) {
    std::string key, bytes;
    ZLOG_TRY(object.omap_get("n", &key));
    ZLOG_TRY(object.read(0, 8, &bytes));
    if (key != value || number_of(bytes) != number_of(value)) return -EIO;
  }
  *out = std::to_string(number_of(value) + 1);
  ZLOG_TRY(object.attr_set("n", *out));
  ZLOG_TRY(object.omap_set("n", *out));
  static thread_local std::list<std::string>
      written;  // as in a request, which a host need not replica
  written.push_back(std::string(8 - out->size(), '0') + *out);
  return object.write(0, written.back());
}

// Answers the number, which must be the same in all three; one of them is found by a listing.
int show(Object& object, std::string_view, std::string* out) {
  ZLOG_TRY(object.attr_get("n", out));
  Page page;
  bool more = false;
  ZLOG_TRY(object.omap_list("", "", 1, &page, &more));
  std::string bytes;
  ZLOG_TRY(object.read(0, 8, &bytes));
  const bool alike = !page.empty() && page.begin()->second.bytes == *out;
  return alike && number_of(bytes) == number_of(*out) ? 0 : -EIO;
}

int touch(Object& object, std::string_view in, std::string*) { return object.attr_set("t", in); }

constexpr Method kCount = {"count", kRead | kWrite, count};
constexpr Method kShow = {"show", kRead, show};
constexpr Method kTouch = {"touch", kRead | kWrite, touch};

struct Answer {
  int code = 0;
  std::string reply;
};
struct Result : Answer {
  std::atomic<int> answers = 0;  // a host's own thread may be the one that answers
};

// A host that is closed at the end of its scope.
class Host {
 public:
  explicit Host(std::shared_ptr<ObjectStore> store)
      : host_(std::make_shared<ClientSideHost>(std::move(store))) {}
  ~Host() { host_->close(); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ClientSideHost* operator->() const { return host_.get(); }

 private:
  const std::shared_ptr<ClientSideHost> host_;
};

Ticket start(const Host& host, const Method& method, const char* request, Result* result) {
  return host->submit("object", method, RequestBytes::copy_of(request), false,
                      [result](int code, const Buffer& reply) {
                        result->code = code;
                        result->reply = reply.bytes;
                        result->answers++;
                      });
}

Answer finish(const std::shared_ptr<Cluster>& cluster, const Host& host, const Method& method,
              const char* request) {
  Result result;
  start(host, method, request, &result);
  cluster->step_until([&] { return result.answers > 0; });
  return {result.code, result.reply};
}

// Each number is given once, and every reader sees one number, however operations interleave.
void clients_take_turns(unsigned seed) {
  constexpr size_t kClients = 3, kCalls = 12;
  const SharedCluster cluster(seed);
  std::array<std::unique_ptr<Host>, kClients> hosts;
  std::vector<Result> counts(kClients * kCalls), shows(kClients * kCalls);
  for (auto& host : hosts) host = std::make_unique<Host>(cluster);
  for (size_t i = 0; i < counts.size(); i++) {
    const Host& host = *hosts[i % kClients];
    start(host, kCount, cluster->chance(2) ? "look" : "", &counts[i]);
    start(host, kShow, "", &shows[i]);
    while (cluster->chance(2)) cluster->step();
  }
  const auto answered = [](const Result& each) { return each.answers > 0; };
  cluster->step_until([&] {
    return std::all_of(counts.begin(), counts.end(), answered) &&
           std::all_of(shows.begin(), shows.end(), answered);
  });
  std::set<uint64_t> numbers;
  for (const Result& each : counts) {
    CHECK(each.code == 0 && each.answers == 1);
    numbers.insert(number_of(each.reply));
  }
  CHECK(numbers.size() == counts.size() && *numbers.rbegin() == counts.size());
  for (const Result& each : shows) CHECK(each.code == 0 || each.code == -ENOENT);
}

void a_lone_writer_needs_one_round_trip() {
  const SharedCluster cluster(1);
  const Host host(cluster);
  for (int i = 0; i < 5; i++) finish(cluster, host, kCount, "");
  CHECK(cluster->reads() == 1 && cluster->writes() == 5);
}

void calls_that_wait_go_out_together() {
  const SharedCluster cluster(1);
  const Host host(cluster);
  std::vector<Result> results(20);
  for (Result& result : results) start(host, kCount, "", &result);
  cluster->step_until([&] { return results.back().answers > 0; });
  for (size_t i = 0; i < results.size(); i++) CHECK(number_of(results[i].reply) == i + 1);
  CHECK(cluster->writes() == 1);
}

void what_is_remembered_answers_nothing_by_itself() {
  const SharedCluster cluster(1);
  const Host one(cluster), other(cluster);
  finish(cluster, one, kCount, "");
  finish(cluster, other, kCount, "");
  CHECK(finish(cluster, one, kCount, "once").reply == "2");
  CHECK(finish(cluster, one, kShow, "").reply == "2");
}

void attributes_are_not_changed_alone() {
  const SharedCluster cluster(1);  // its write() checks that
  const Host host(cluster);
  CHECK(finish(cluster, host, kTouch, "x").code == 0 && cluster->object().attrs["t"] == "x");
}

// A store that keeps a thread which starts an operation until the test lets it go.
class Turnstile final : public ObjectStore {
 public:
  Ticket read(const std::string&, Reads, bool, ReadDone done) override {
    entered_.set_value();
    opened_.get_future().wait();
    done(-ECANCELED, {});
    return kNoTicket;
  }
  Ticket write(const std::string&, uint64_t, std::vector<Change>, int, WriteDone) override {
    return kNoTicket;
  }
  void give_up(Ticket) override {}

  void wait_until_entered() { entered_.get_future().wait(); }
  void open() { opened_.set_value(); }

 private:
  std::promise<void> entered_, opened_;
};

// A thread in the store shares it, and finds the host closed.
void closing_does_not_wait_for_a_thread_in_the_store() {
  const auto store = std::make_shared<Turnstile>();
  const Host host(store);
  Result result;
  std::thread caller([&] { start(host, kShow, "", &result); });
  store->wait_until_entered();
  host->close();
  CHECK(result.answers == 1 && result.code == -ECANCELED);
  store->open();
  caller.join();
  CHECK(result.answers == 1);
}

// An object that is removed and made again has another version, and one that is gone has none.
void what_is_removed_is_not_taken_for_what_it_was() {
  const SharedCluster cluster(1);
  const Host host(cluster);
  finish(cluster, host, kCount, "");
  cluster->object() = {};
  CHECK(finish(cluster, host, kShow, "").code == -ENOENT);
  finish(cluster, host, kCount, "");
  cluster->object() = {};
  CHECK(finish(cluster, host, kCount, "").reply == "1");
}

// Calls are given up in every state, their replies lost: each answers once, and others go on.
void calls_are_given_up_at_any_time(unsigned seed) {
  std::vector<Result> results(30), others(30);
  const SharedCluster cluster(seed);
  const Host host(cluster), other(cluster);
  std::vector<Ticket> tickets;
  for (size_t i = 0; i < results.size(); i++) {
    tickets.push_back(start(host, cluster->chance(4) ? kShow : kCount, "look", &results[i]));
    if (cluster->chance(3)) start(other, kTouch, "x", &others[i]);
    while (cluster->chance(2)) cluster->step();
    host->give_up(tickets[cluster->chance(2) ? tickets.size() - 1 : 0]);
  }
  const Answer last = finish(cluster, host, kShow, "");
  CHECK(last.code == 0 || last.code == -ENOENT || last.code == -ENODATA);
  uint64_t acknowledged = 0;
  for (const Result& each : results) {
    CHECK(each.answers == 1 || each.code == 0);
    if (each.answers > 0 && each.code == 0)
      acknowledged = std::max(acknowledged, number_of(each.reply));
  }
  CHECK(number_of(last.reply) >= acknowledged);
  host->close();
  for (const Result& each : results) CHECK(each.answers == 1);
}

}  // namespace

int main() {
  for (unsigned seed = 1; seed <= 100; seed++) {
    clients_take_turns(seed);
    calls_are_given_up_at_any_time(seed);
  }
  a_lone_writer_needs_one_round_trip();
  calls_that_wait_go_out_together();
  what_is_remembered_answers_nothing_by_itself();
  attributes_are_not_changed_alone();
  what_is_removed_is_not_taken_for_what_it_was();
  closing_does_not_wait_for_a_thread_in_the_store();
  return 0;
}
