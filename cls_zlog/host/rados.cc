#include "cls_zlog/host/rados.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cls_zlog/host/listing.h"
#include "cls_zlog/host/quiet_thread.h"
#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/stripe_messages.h"

namespace zlog {
namespace {

constexpr std::chrono::seconds kCloseTimeout{5};
constexpr std::chrono::milliseconds kCancelInterval{20};

// The first release whose OSDs return what a writing method answers (OPERATION_RETURNVEC).
constexpr int kOctopus = 15;

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
  return (call.flags & kAddsData) != 0 ? 0 : librados::OPERATION_FULL_FORCE;
}

// The bytes of a list where the messenger put them. They are copied if they lie in several pieces,
// which a message's do not.
Buffer taken(librados::bufferlist&& list) {
  const auto owner = std::make_shared<librados::bufferlist>(std::move(list));
  return {{owner->c_str(), owner->length()}, owner};
}

// The payload as librados has it: the same memory, which belongs to a buffer of its own kind from
// the first time on.
librados::bufferlist shared(RequestBytes& payload) {
  namespace buffer = ceph::buffer;
  const std::shared_ptr<void>& owner = payload.hand_over([&] {
    const auto share = std::make_shared<buffer::ptr>();
    *share = buffer::claim_malloc(static_cast<unsigned>(payload.size()), payload.data());
    return share;
  });
  librados::bufferlist list;
  list.append(*std::static_pointer_cast<buffer::ptr>(owner));
  return list;
}

int list_page(librados::IoCtx& io, const std::string& prefix, const std::string& after,
              Listing* page) {
  librados::ObjectCursor from = io.object_list_begin(), next;
  if (!after.empty() && !from.from_str(after)) return -EINVAL;
  std::vector<librados::ObjectItem> found;
  const int count =
      io.object_list(from, io.object_list_end(), Listing::kObjectsMax, {}, &found, &next);
  if (count < 0) return count;
  for (librados::ObjectItem& item : found) {
    if (starts_with(item.oid, prefix)) page->names.push_back(std::move(item.oid));
  }
  if (!io.object_list_is_end(next)) page->next = next.to_str();
  return 0;
}

// Makes OSDs with other copies of the object than the primary one answer for it. They do that where
// nothing of it may be missing on another OSD, and hear of how far these are with each change in the
// placement group. So here are two, of an object that is there for a moment. A client that may not
// make it goes without.
void stir(const librados::IoCtx& io, const std::string& object) {
  librados::IoCtx beside;
  beside.dup(io);
  beside.locator_set_key(object);  // into the same placement group
  const auto change = [&](const char* method, const auto& request) {
    librados::bufferlist input;
    input.append(wire::encoded(request));
    librados::ObjectWriteOperation operation;
    operation.exec(kClassName, method, input);
    beside.operate("zlog.stir", &operation, librados::OPERATION_FULL_FORCE);
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
    if (completion != nullptr) completion->release();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const Done done;
  Ticket ticket = kNoTicket;
  std::shared_ptr<Outstanding> outstanding;
  librados::AioCompletion* completion = nullptr;
  librados::bufferlist reply;
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
  bool cancel_all(librados::IoCtx* io, std::chrono::steady_clock::time_point deadline) {
    for (;;) {
      for (const std::shared_ptr<Call>& call : snapshot()) io->aio_cancel(call->completion);
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

RadosHost::RadosHost(std::unique_ptr<librados::Rados> cluster, librados::IoCtx io)
    : outstanding_(std::make_shared<Outstanding>()),
      cluster_(std::move(cluster)),
      io_(std::move(io)) {
  keep_large_blocks();
}

RadosHost::~RadosHost() { close(); }

std::unique_ptr<RadosHost> RadosHost::share(rados_ioctx_t ioctx) {
  librados::IoCtx theirs, ours;
  librados::IoCtx::from_rados_ioctx_t(ioctx, theirs);
  ours.dup(theirs);
  return std::unique_ptr<RadosHost>(new RadosHost(nullptr, std::move(ours)));
}

int RadosHost::check_release() {
  int8_t oldest = 0;
  if (const int error = librados::Rados(io_).get_min_compatible_osd(&oldest)) return error;
  return oldest < kOctopus ? -EPROTO : 0;
}

int RadosHost::fsid(std::string* out) { return librados::Rados(io_).cluster_fsid(out); }

int RadosHost::register_service(const std::string& service, const std::string& daemon,
                                const std::map<std::string, std::string>& metadata) {
  const std::shared_lock<std::shared_mutex> lock(handles_mutex_);
  if (closing_) return -ECANCELED;
  return librados::Rados(io_).service_daemon_register(service, daemon, metadata);
}

int RadosHost::update_service(std::map<std::string, std::string> status) {
  const std::shared_lock<std::shared_mutex> lock(handles_mutex_);
  if (closing_) return -ECANCELED;
  return librados::Rados(io_).service_daemon_update_status(std::move(status));
}

void RadosHost::ask_monitor(std::string_view command, Done done) {
  const std::shared_lock<std::shared_mutex> lock(handles_mutex_);
  if (closing_ || asking_->exchange(true)) {
    done(closing_ ? -ECANCELED : -EBUSY, {});
    return;
  }
  const auto cluster = std::make_shared<librados::Rados>(io_);
  start_quiet_thread([cluster, asking = asking_, command = std::string(command),
                      done = std::move(done)]() mutable {
    librados::bufferlist answer;
    std::string words;
    const int error = cluster->mon_command(std::move(command), {}, &answer, &words);
    *asking = false;
    done(error, error == 0 ? taken(std::move(answer)) : Buffer::of(std::move(words)));
  }).detach();
}

// A page looks at objects of all names in the namespace.
void RadosHost::list(std::string_view prefix, std::string_view after, Done done) {
  const std::shared_lock<std::shared_mutex> lock(handles_mutex_);
  if (closing_) {
    done(-ECANCELED, {});
    return;
  }
  const auto cluster = std::make_shared<librados::Rados>(io_);  // outlives the host if need be
  const auto io = std::make_shared<librados::IoCtx>();
  io->dup(io_);
  start_quiet_thread([cluster, io, prefix = std::string(prefix), after = std::string(after),
                      done = std::move(done)] {
    Buffer reply;
    int error;
    try {
      Listing page;
      error = list_page(*io, prefix, after, &page);
      if (error == 0) reply = Buffer::of(page.encode());
    } catch (const std::exception&) {  // librados throws at a place that it can't read
      error = -EINVAL;
    }
    done(error, std::move(reply));
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
  const auto cluster = std::make_shared<librados::Rados>(io_);  // outlives the host if need be
  const auto io = std::make_shared<librados::IoCtx>();
  io->dup(io_);
  start_quiet_thread([cluster, io, object = std::string(object), name = found->name,
                      payload = std::move(payload), done = std::move(done)] {
    stir(*io, object);
    librados::bufferlist input = shared(*payload), reply;
    int code = 0;
    librados::ObjectReadOperation operation;
    operation.exec(kClassName, name, input, &reply, &code);
    const int error = io->operate(object, &operation, nullptr, librados::OPERATION_BALANCE_READS);
    if (error < 0) code = error;
    done(code, code >= 0 ? taken(std::move(reply)) : Buffer());
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
  call->completion = librados::Rados::aio_create_completion(call.get(), &on_complete);
  outstanding_->add(call);
  if (const int error = start(what, std::string(object), *payload, call.get())) {
    call->done(error, {});
    outstanding_->remove(call->ticket);
  }
  return call->ticket;
}

void RadosHost::give_up(Ticket ticket) {
  const std::shared_lock<std::shared_mutex> lock(handles_mutex_);
  const std::shared_ptr<Call> call = closing_ ? nullptr : outstanding_->find(ticket);
  if (call != nullptr) io_.aio_cancel(call->completion);
}

int RadosHost::start(const ClassCall& what, const std::string& object, RequestBytes& payload,
                     Call* call) {
  librados::bufferlist input = shared(payload);
  if ((what.flags & kWrite) == 0) {
    librados::ObjectReadOperation operation;
    operation.exec(what.class_name, what.method, input, &call->reply, &call->method_result);
    return io_.aio_operate(object, call->completion, &operation, 0, nullptr);
  }
  librados::ObjectWriteOperation operation;
  operation.exec(what.class_name, what.method, input, &call->reply, &call->method_result);
  const int flags = librados::OPERATION_RETURNVEC | flags_when_full(what);
  return io_.aio_operate(object, call->completion, &operation, flags);
}

// On a thread of librados.
void RadosHost::on_complete(rados_completion_t, void* argument) {
  Call* call = static_cast<Call*>(argument);
  const std::shared_ptr<Outstanding> outstanding = call->outstanding;
  const int error = call->completion->get_return_value();
  int code = error < 0 ? error : call->method_result;
  Buffer reply;
  try {
    if (code >= 0) reply = taken(std::move(call->reply));
  } catch (const std::bad_alloc&) {
    code = -ENOMEM;
  }
  call->done(code, std::move(reply));
  outstanding->remove(call->ticket);
}

void RadosHost::close() {
  const auto deadline = std::chrono::steady_clock::now() + kCloseTimeout;
  closing_ = true;
  // First beside those who are just starting operations: librados may hold them up until others
  // end.
  outstanding_->cancel_all(&io_, deadline);
  const std::unique_lock<std::shared_mutex> lock(handles_mutex_);
  if (closed_) return;
  closed_ = true;
  if (!outstanding_->cancel_all(&io_, deadline)) {
    // An operation that can't even be cancelled may still come back: its handles are left to it.
    new librados::IoCtx(std::move(io_));
    cluster_.release();  // NOLINT(bugprone-unused-return-value)
    return;
  }
  io_.close();
  // Not by its shutdown(): that takes a share of the client, its destructor another one, and a
  // thread that still has its own would find none left.
  cluster_.reset();
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
  auto cluster = std::make_unique<librados::Rados>();
  const char* client = target.client.empty() ? nullptr : target.client.c_str();
  *step = "set up librados";
  if (const int error = cluster->init(client)) return error;
  *step = target.conf.empty() ? "find a ceph.conf" : "read the configuration file " + target.conf;
  const char* conf = target.conf.empty() ? nullptr : target.conf.c_str();
  if (const int error = cluster->conf_read_file(conf)) return error;
  *step = "read CEPH_ARGS";
  if (const int error = cluster->conf_parse_env(nullptr)) return error;
  cluster->conf_get("keyring", keyring_);
  cluster->conf_get("mon_host", monitors_);
  *step = "set the timeouts";
  const std::string seconds = std::to_string(target.timeout_s);
  for (const char* option : {"client_mount_timeout", "rados_mon_op_timeout"}) {
    if (const int error = cluster->conf_set(option, seconds.c_str())) return error;
  }
  // By default librados holds up the caller that starts one operation above 1024, for as long as it
  // takes until one ends: an event loop, or a caller whose time is long over. 0 is no limit. (Its
  // limit of bytes in flight does not count what calls of a class carry.)
  *step = "set the number of operations in flight";
  if (const int error = cluster->conf_set("objecter_inflight_ops", "0")) return error;
  *step = "connect to the cluster";
  if (const int error = cluster->connect()) return error;
  *step = "open the pool";
  librados::IoCtx io;
  if (const int error = cluster->ioctx_create(target.pool.c_str(), io)) return error;
  io.set_namespace(target.nspace);
  std::unique_ptr<RadosHost> host(new RadosHost(std::move(cluster), std::move(io)));
  *step = "check the OSDs' release";
  const int error = host->check_release();
  if (error == 0) host_ = std::move(host);
  return error;
}

}  // namespace zlog
