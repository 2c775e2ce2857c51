#include "cls_zlog/host/rados.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cls_zlog/host/listing.h"
#include "cls_zlog/host/quiet_thread.h"
#include "cls_zlog/host/rados_listing.h"
#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/stripe_messages.h"

namespace zlog {
namespace {

constexpr std::chrono::seconds kCloseTimeout{5};
constexpr std::chrono::milliseconds kCancelInterval{20};
constexpr int kCopiesAskedMax = 4;  // at the same time

// The first release whose OSDs return what a writing method answers (OPERATION_RETURNVEC).
constexpr int kOctopus = 15;

constexpr size_t kFsidBytes = 36;
constexpr size_t kNamespaceBytesMax = 4096;  // OSDs take 256, unless they are told otherwise

// What sequencers need of Ceph's own class `lock`.
constexpr ClassCall kLockCalls[] = {
    {"lock", "lock", kRead | kWrite},
    {"lock", "unlock", kRead | kWrite},
    {"lock", "break_lock", kRead | kWrite},
    {"lock", "get_info", kRead},
};

// On a full cluster an operation that adds data waits for room, as RADOS has it, and every other
// one goes through: else no client could trim, which gives the space back. Cursors and fills are
// among these, though they add a little: a reader must get past holes and commit, since trims wait
// for it. (FULL_TRY is no way to have it refused instead: an OSD then lets changes of keys and
// attributes pass, until nothing passes.)
int flags_when_full(const ClassCall& call) {
  return (call.flags & kAddsData) != 0 ? 0 : kFullForce;
}

// Bytes that librados has made.
Buffer taken(char* bytes, size_t size) {
  if (bytes == nullptr) return {};
  return {{bytes, size}, std::shared_ptr<char>(bytes, librados().buffer_free)};
}

// An I/O context, with a share of the cluster that it is of.
RadosHandle own(rados_ioctx_t io, const RadosHandle& cluster) {
  return {io, [cluster](void* old) { librados().ioctx_destroy(old); }};
}

// Another I/O context of the same pool and namespace.
int copy_of(rados_ioctx_t io, RadosHandle* copy) {
  std::array<char, kNamespaceBytesMax + 1> nspace{};
  const int length = librados().ioctx_get_namespace(io, nspace.data(), nspace.size());
  if (length < 0) return length;
  rados_ioctx_t made = nullptr;
  if (const int error = librados().ioctx_create2(librados().ioctx_get_cluster(io),
                                                 librados().ioctx_get_id(io), &made)) {
    return error;
  }
  librados().ioctx_set_namespace(made, nspace.data());
  *copy = own(made, nullptr);
  return 0;
}

// As librados takes key-value pairs: each key and each value ends with a NUL, and all with one more.
std::string pairs(const std::map<std::string, std::string>& words) {
  std::string out;
  for (const auto& [key, value] : words) {
    out.append(key).push_back('\0');
    out.append(value).push_back('\0');
  }
  return out;
}

// What the configuration says; empty where it says nothing.
std::string setting(rados_t cluster, const char* option) {
  std::string value(256, '\0');
  int error;
  while ((error = librados().conf_get(cluster, option, value.data(), value.size())) ==
         -ENAMETOOLONG) {
    value.resize(2 * value.size());
  }
  return error == 0 ? value.c_str() : "";
}

// Makes OSDs with other copies of the object than the primary one answer for it. They do that where
// nothing of it may be missing on another OSD, and hear of how far these are with each change in the
// placement group. So here are two, of an object that is there for a moment. A client that may not
// make it goes without.
void stir(rados_ioctx_t io, const std::string& object) {
  RadosHandle beside;
  if (copy_of(io, &beside) != 0) return;
  librados().ioctx_locator_set_key(beside.get(), object.c_str());  // into the same placement group
  const auto change = [&](const char* method, const auto& request) {
    const std::string input = wire::encoded(request);
    const auto operation = new_write_op();
    librados().write_op_exec(operation.get(), kClassName, method, input.data(), input.size(),
                             nullptr);
    librados().write_op_operate(operation.get(), beside.get(), "zlog.stir", nullptr, kFullForce);
  };
  change("seal", SealRequest{1, 1, 0, true});
  change("remove", EpochRequest{1});
}

// Lets malloc keep what requests and replies of megabytes leave behind. Else it gives their memory
// back to the kernel, which maps and clears it anew, page by page, for the next ones: a fifth of a
// writer's CPU time, with entries of 16 KiB. glibc goes by the largest block that was ever freed:
// from then on such blocks come from its heap, and up to twice as many bytes stay there. It learns
// from none above 32 MiB. This block is never touched, so it costs no memory itself.
void keep_large_blocks() {
  constexpr size_t kBlockBytes = size_t{31} << 20;
  static std::once_flag once;
  std::call_once(once, [] {
    void* volatile block = std::malloc(kBlockBytes);  // volatile: not to be optimized away
    std::free(block);
  });
}

}  // namespace

// One operation, from submit() to its completion.
struct RadosHost::Call {
  explicit Call(Done done) : done(std::move(done)) {}
  ~Call() {
    librados().aio_release(completion);
    librados().buffer_free(reply);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const Done done;
  Ticket ticket = kNoTicket;
  std::shared_ptr<Outstanding> outstanding;
  rados_completion_t completion = nullptr;
  char* reply = nullptr;
  size_t reply_size = 0;
  int method_result = 0;
};

// The operations that librados still has. It belongs to each of them too, as a callback may come
// when the host is gone.
class RadosHost::Outstanding {
 public:
  void add(const std::shared_ptr<Call>& call) {
    const std::lock_guard<std::mutex> lock(mutex_);
    call->ticket = ++last_;
    calls_.emplace(call->ticket, call);
  }

  // None when it is over.
  std::shared_ptr<Call> find(Ticket ticket) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = calls_.find(ticket);
    return found == calls_.end() ? nullptr : found->second;
  }

  void remove(Ticket ticket) {
    std::shared_ptr<Call> removed;  // dies without the mutex
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = calls_.find(ticket);
    removed = std::move(found->second);
    calls_.erase(found);
    if (calls_.empty()) none_left_.notify_all();
  }

  // Cancels all of them until none is left; false when some still are at the deadline. One that is
  // just being started can't be cancelled yet, hence the repetition.
  bool cancel_all(rados_ioctx_t io, std::chrono::steady_clock::time_point deadline) {
    for (;;) {
      for (const std::shared_ptr<Call>& call : snapshot()) {
        librados().aio_cancel(io, call->completion);
      }
      std::unique_lock<std::mutex> lock(mutex_);
      const auto none = [this] { return calls_.empty(); };
      if (none_left_.wait_for(lock, kCancelInterval, none)) return true;
      if (std::chrono::steady_clock::now() >= deadline) return false;
    }
  }

 private:
  std::vector<std::shared_ptr<Call>> snapshot() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::shared_ptr<Call>> calls;
    calls.reserve(calls_.size());
    for (const auto& [ticket, call] : calls_) calls.push_back(call);
    return calls;
  }

  std::mutex mutex_;
  std::condition_variable none_left_;
  Ticket last_ = kNoTicket;
  std::unordered_map<Ticket, std::shared_ptr<Call>> calls_;
};

RadosHost::RadosHost(RadosHandle io)
    : outstanding_(std::make_shared<Outstanding>()), io_(std::move(io)) {
  keep_large_blocks();
}

RadosHost::~RadosHost() { close(); }

int RadosHost::share(rados_ioctx_t ioctx, std::unique_ptr<RadosHost>* host) {
  RadosHandle io;
  if (const int error = copy_of(ioctx, &io)) return error;
  host->reset(new RadosHost(std::move(io)));
  return (*host)->check_release();
}

rados_t RadosHost::cluster() const { return librados().ioctx_get_cluster(io_.get()); }

int RadosHost::check_release() {
  int8_t oldest = 0;
  if (const int error = librados().get_min_compatible_osd(cluster(), &oldest)) return error;
  return oldest < kOctopus ? -EPROTO : 0;
}

int RadosHost::fsid(std::string* out) {
  std::array<char, kFsidBytes + 1> text{};
  const int error = librados().cluster_fsid(cluster(), text.data(), text.size());
  *out = text.data();
  return std::min(0, error);
}

int RadosHost::register_service(const std::string& service, const std::string& daemon,
                                const std::map<std::string, std::string>& metadata) {
  const std::shared_lock<std::shared_mutex> lock(handles_mutex_);
  if (closing_) return -ECANCELED;
  return librados().service_register(cluster(), service.c_str(), daemon.c_str(),
                                     pairs(metadata).c_str());
}

int RadosHost::update_service(const std::map<std::string, std::string>& status) {
  const std::shared_lock<std::shared_mutex> lock(handles_mutex_);
  if (closing_) return -ECANCELED;
  return librados().service_update_status(cluster(), pairs(status).c_str());
}

void RadosHost::ask_monitor(std::string_view command, Done done) {
  const std::shared_lock<std::shared_mutex> lock(handles_mutex_);
  if (closing_ || asking_->exchange(true)) {
    done(closing_ ? -ECANCELED : -EBUSY, {});
    return;
  }
  start_quiet_thread([io = io_, asking = asking_, command = std::string(command),
                      done = std::move(done)] {
    const char* line = command.c_str();
    char *answer = nullptr, *words = nullptr;
    size_t answer_size = 0, words_size = 0;
    const int error =
        librados().mon_command(librados().ioctx_get_cluster(io.get()), &line, 1, nullptr, 0,
                               &answer, &answer_size, &words, &words_size);
    *asking = false;
    const Buffer replied = taken(answer, answer_size), said = taken(words, words_size);
    done(error, error == 0 ? replied : said);
  }).detach();
}

// A page looks at objects of all names in the namespace.
void RadosHost::list(std::string_view prefix, std::string_view after, Done done) {
  const std::shared_lock<std::shared_mutex> lock(handles_mutex_);
  if (closing_) {
    done(-ECANCELED, {});
    return;
  }
  start_quiet_thread([io = io_, prefix = std::string(prefix), after = std::string(after),
                      done = std::move(done)] {
    Listing page;
    const int error = list_page(io.get(), prefix, after, &page);
    done(error, error == 0 ? Buffer::of(page.encode()) : Buffer());
  }).detach();
}

// In a thread of its own, since one operation follows upon the other.
void RadosHost::ask_copy(std::string_view object, std::string_view method, SharedRequest payload,
                         Done done) {
  const std::shared_lock<std::shared_mutex> lock(handles_mutex_);
  const Method* found = find_method(method);
  if (closing_ || found == nullptr || (found->flags & kWrite) != 0) {
    done(closing_ ? -ECANCELED : -EOPNOTSUPP, {});
    return;
  }
  const std::shared_ptr<void> turn(nullptr, [asked = copies_asked_](void*) { --*asked; });
  if (++*copies_asked_ > kCopiesAskedMax) {
    done(-EBUSY, {});
    return;
  }
  start_quiet_thread([io = io_, object = std::string(object), name = found->name, turn,
                      payload = std::move(payload), done = std::move(done)] {
    stir(io.get(), object);
    char* reply = nullptr;
    size_t size = 0;
    int code = 0;
    const auto operation = new_read_op();
    librados().read_op_exec(operation.get(), kClassName, name, payload->data(), payload->size(),
                            &reply, &size, &code);
    const int error =
        librados().read_op_operate(operation.get(), io.get(), object.c_str(), kBalanceReads);
    if (error < 0) code = error;
    Buffer bytes = taken(reply, size);
    done(code, code >= 0 ? std::move(bytes) : Buffer());
  }).detach();
}

Ticket RadosHost::submit(std::string_view object, std::string_view method, SharedRequest payload,
                         Done done) {
  const Method* found = find_method(method);
  const std::string name(method);  // an unknown one is the OSD's to refuse
  const int flags = found != nullptr ? found->flags : kRead;
  return begin({kClassName, name.c_str(), flags}, object, payload, std::move(done));
}

Ticket RadosHost::lock(std::string_view object, std::string_view method, SharedRequest payload,
                       Done done) {
  for (const ClassCall& call : kLockCalls) {
    if (method == call.method) return begin(call, object, payload, std::move(done));
  }
  done(-EOPNOTSUPP, {});
  return kNoTicket;
}

Ticket RadosHost::begin(const ClassCall& what, std::string_view object,
                        const SharedRequest& payload, Done done) {
  const std::shared_lock<std::shared_mutex> lock(handles_mutex_);
  if (closing_) {
    done(-ECANCELED, {});
    return kNoTicket;
  }
  const auto call = std::make_shared<Call>(std::move(done));
  call->outstanding = outstanding_;
  librados().aio_create_completion2(call.get(), &on_complete, &call->completion);
  outstanding_->add(call);
  if (const int error = start(what, std::string(object), payload->bytes(), call.get())) {
    call->done(error, {});
    outstanding_->remove(call->ticket);
  }
  return call->ticket;
}

void RadosHost::give_up(Ticket ticket) {
  const std::shared_lock<std::shared_mutex> lock(handles_mutex_);
  const std::shared_ptr<Call> call = closing_ ? nullptr : outstanding_->find(ticket);
  if (call != nullptr) librados().aio_cancel(io_.get(), call->completion);
}

// librados' C interface gives a call in a writing operation no room for a reply, and one in a reading
// operation does. Both kinds of operation are one in librados, so both take the latter.
int RadosHost::start(const ClassCall& what, const std::string& object, std::string_view payload,
                     Call* call) {
  const bool writes = (what.flags & kWrite) != 0;
  const auto operation = writes ? new_write_op() : new_read_op();
  librados().read_op_exec(operation.get(), what.class_name, what.method, payload.data(),
                          payload.size(), &call->reply, &call->reply_size, &call->method_result);
  if (!writes) {
    return librados().aio_read_op_operate(operation.get(), io_.get(), call->completion,
                                          object.c_str(), 0);
  }
  return librados().aio_write_op_operate(operation.get(), io_.get(), call->completion,
                                         object.c_str(), nullptr,
                                         kReturnVec | flags_when_full(what));
}

// On a thread of librados.
void RadosHost::on_complete(rados_completion_t completion, void* argument) {
  Call* call = static_cast<Call*>(argument);
  const std::shared_ptr<Outstanding> outstanding = call->outstanding;
  const int error = librados().aio_get_return_value(completion);
  const int code = error < 0 ? error : call->method_result;
  call->done(code,
             code >= 0 ? taken(std::exchange(call->reply, nullptr), call->reply_size) : Buffer());
  outstanding->remove(call->ticket);
}

void RadosHost::close() {
  const auto deadline = std::chrono::steady_clock::now() + kCloseTimeout;
  if (closing_.exchange(true)) return;
  // First beside those who are just starting operations: librados may hold them up until others
  // end.
  outstanding_->cancel_all(io_.get(), deadline);
  const std::unique_lock<std::shared_mutex> lock(handles_mutex_);
  // An operation that can't even be cancelled may still come back: the handle is left to it.
  if (!outstanding_->cancel_all(io_.get(), deadline)) new RadosHandle(io_);
  io_.reset();
}

std::shared_ptr<RadosConnecting> RadosConnecting::start(const RadosTarget& target) {
  auto connecting = std::make_shared<RadosConnecting>();
  start_quiet_thread([connecting, target] {
    const Done finish = Pending::completer(connecting->finished_);
    std::string step;
    const int error = connecting->connect(target, &step);
    finish(error, Buffer::of(step));
  }).detach();
  return connecting;
}

int RadosConnecting::connect(const RadosTarget& target, std::string* step) {
  const char* client = target.client.empty() ? nullptr : target.client.c_str();
  rados_t created = nullptr;
  *step = "set up librados";
  if (const int error = librados().create(&created, client)) return error;
  const RadosHandle cluster(created, librados().shutdown);
  *step = target.conf.empty() ? "find a ceph.conf" : "read the configuration file " + target.conf;
  const char* conf = target.conf.empty() ? nullptr : target.conf.c_str();
  if (const int error = librados().conf_read_file(created, conf)) return error;
  *step = "read CEPH_ARGS";
  if (const int error = librados().conf_parse_env(created, nullptr)) return error;
  keyring_ = setting(created, "keyring");
  monitors_ = setting(created, "mon_host");
  *step = "set the timeouts";
  const std::string seconds = std::to_string(target.timeout_s);
  for (const char* option : {"client_mount_timeout", "rados_mon_op_timeout"}) {
    if (const int error = librados().conf_set(created, option, seconds.c_str())) return error;
  }
  // By default librados holds up the caller that starts one operation above 1024, for as long as it
  // takes until one ends: an event loop, or a caller whose time is long over. 0 is no limit. (Its
  // limit of bytes in flight does not count what calls of a class carry.)
  *step = "set the number of operations in flight";
  if (const int error = librados().conf_set(created, "objecter_inflight_ops", "0")) return error;
  *step = "connect to the cluster";
  if (const int error = librados().connect(created)) return error;
  *step = "open the pool";
  rados_ioctx_t io = nullptr;
  if (const int error = librados().ioctx_create(created, target.pool.c_str(), &io)) return error;
  librados().ioctx_set_namespace(io, target.nspace.c_str());
  std::unique_ptr<RadosHost> host(new RadosHost(own(io, cluster)));
  *step = "check the OSDs' release";
  const int error = host->check_release();
  if (error == 0) host_ = std::move(host);
  return error;
}

}  // namespace zlog
