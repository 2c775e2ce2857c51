#include "cls_zlog/host/rados/rados_host.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <utility>

#include "cls_zlog/host/client_side/lock_class.h"
#include "cls_zlog/host/large_blocks.h"
#include "cls_zlog/host/listing.h"
#include "cls_zlog/host/rados/listing.h"
#include "cls_zlog/host/rados/object.h"
#include "cls_zlog/host/rados/replicas.h"
#include "cls_zlog/host/signal_masked_thread.h"

namespace zlog {
namespace {

constexpr std::chrono::seconds kCloseTimeout{5};
constexpr int kReplicasAskedMax = 4;  // at the same time

// The first release whose OSDs return what a writing method answers (OPERATION_RETURNVEC).
constexpr int kOctopus = 15;

// Tickets of the client-side host have this bit.
constexpr Ticket kClientSideTicket = Ticket{1} << 63;

// Those of watches have this one.
constexpr Ticket kWatchTicket = Ticket{1} << 62;

constexpr size_t kFsidBytes = 36;

// On a full cluster an operation that adds data waits for room, as RADOS has it, and every other
// one goes through: else no client could trim, which gives the space back. Cursors and fills are
// among these, though they add a little: a reader must get past holes and commit, since trims wait
// for it. (FULL_TRY is no way to have it refused instead: an OSD then lets changes of keys and
// attributes pass, until nothing passes.)
int flags_when_full(int method_flags) { return (method_flags & kAddsData) != 0 ? 0 : kFullForce; }

// As librados takes key-value pairs: each key and each value ends with a NUL, and all with one more.
std::string pairs(const std::map<std::string, std::string>& words) {
  std::string out;
  for (const auto& [key, value] : words) {
    out.append(key).push_back('\0');
    out.append(value).push_back('\0');
  }
  return out;
}

}  // namespace

// What a ClientSideHost needs of the cluster.
class RadosHost::Operations final : public ObjectStore {
 public:
  explicit Operations(RadosHost& host) : host_(host) {}

  Ticket read(const std::string& object, Reads reads, bool replica, ReadDone done) override {
    const auto operation = std::make_shared<RadosRead>(std::move(reads));
    return host_.begin(
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

  Ticket write(const std::string& object, uint64_t version, std::vector<Change> changes, int flags,
               WriteDone done) override {
    return host_.begin(
        [&](rados_ioctx_t io, rados_completion_t completion) {
          const RadosOperation operation = operation_of(version, changes);
          return librados().aio_write_op_operate(operation.get(), io, completion, object.c_str(),
                                                 nullptr, flags_when_full(flags));
        },
        [version, done = std::move(done)](int error, rados_completion_t completion) {
          done(error_of(version, error), error == 0 ? librados().aio_get_version(completion) : 0);
        });
  }

  void give_up(Ticket ticket) override { host_.cancel(ticket); }

 private:
  RadosHost& host_;
};

RadosHost::RadosHost(RadosHandle io, ClassUse class_use)
    : outstanding_(std::make_shared<RadosCalls>()),
      io_(std::move(io)),
      client_(librados().get_instance_id(cluster())),
      operations_(std::make_unique<Operations>(*this)),
      client_side_(std::make_shared<ClientSideHost>(*operations_)),
      way_(std::make_shared<std::atomic<Way>>(class_use == ClassUse::kAuto    ? Way::kUnknown
                                              : class_use == ClassUse::kNever ? Way::kClientSide
                                                                              : Way::kClassAlone)),
      lock_way_(std::make_shared<std::atomic<Way>>(
          class_use == ClassUse::kRequire ? Way::kClassAlone : Way::kUnknown)),
      notifier_(std::make_shared<RadosNotifier>(io_.get(), outstanding_)),
      watches_(std::make_shared<RadosWatches>(io_.get(), outstanding_)) {
  keep_large_blocks();
}

RadosHost::~RadosHost() { close(); }

int RadosHost::share(rados_ioctx_t ioctx, ClassUse class_use, std::unique_ptr<RadosHost>* host) {
  RadosHandle io;
  if (const int error = copy_of(ioctx, &io)) return error;
  host->reset(new RadosHost(std::move(io), class_use));
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
  const auto ask = [io = io_, asking = asking_, command = std::string(command),
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
  };
  try {
    start_signal_masked_thread(ask).detach();
  } catch (...) {
    *asking_ = false;
    throw;
  }
}

// A page looks at objects of all names in the namespace.
void RadosHost::list(std::string_view prefix, std::string_view after, Done done) {
  const std::shared_lock<std::shared_mutex> lock(handles_mutex_);
  if (closing_) {
    done(-ECANCELED, {});
    return;
  }
  start_signal_masked_thread([io = io_, prefix = std::string(prefix), after = std::string(after),
                              done = std::move(done)] {
    Listing page;
    const int error = list_page(io.get(), prefix, after, &page);
    answer_with_page(error, page, done);
  }).detach();
}

// In a thread of its own, since one operation follows upon the other.
void RadosHost::ask_replica(std::string_view object, std::string_view method, SharedRequest payload,
                            Done done) {
  const std::shared_lock<std::shared_mutex> lock(handles_mutex_);
  const Method* found = find_method(method);
  if (closing_ || found == nullptr || (found->flags & kWrite) != 0) {
    done(closing_ ? -ECANCELED : -EOPNOTSUPP, {});
    return;
  }
  const std::shared_ptr<void> turn(nullptr, [asked = replicas_asked_](void*) { --*asked; });
  if (++*replicas_asked_ > kReplicasAskedMax) {
    done(-EBUSY, {});
    return;
  }
  start_signal_masked_thread([io = io_,
                              client_side = *way_ == Way::kClientSide ? client_side_ : nullptr,
                              object = std::string(object), found, turn,
                              payload = std::move(payload), done = std::move(done)] {
    stir(io.get(), object, client_side != nullptr);
    if (client_side == nullptr) {
      const ReplicaAnswer answer = run_at_replica(io.get(), object, found->name, payload->bytes());
      done(answer.code, answer.told());
      return;
    }
    client_side->submit(object, *found, payload, true, [turn, done](int code, const Buffer& reply) {
      done(code, ReplicaAnswer{code, 0, reply}.told());
    });
  }).detach();
}

Ticket RadosHost::submit(std::string_view object, std::string_view method, SharedRequest payload,
                         Done done) {
  const Method* found = find_method(method);
  if (found != nullptr) return call({kClassName, *found, way_, payload}, object, payload, done);
  const std::string name(method);  // an unknown one is the OSD's to refuse
  return call_class({kClassName, name.c_str(), kRead}, object, payload, std::move(done));
}

Ticket RadosHost::lock(std::string_view object, std::string_view method, SharedRequest payload,
                       Done done) {
  const Method* found = find_lock_method(method);
  if (found == nullptr) {
    done(-EOPNOTSUPP, {});
    return kNoTicket;
  }
  SharedRequest named = lock_request(client_, payload->bytes());
  return call({"lock", *found, lock_way_, std::move(named)}, object, payload, done);
}

// Each OSD answers for its own objects, so an answer tells of one object whether the OSDs do it.
Ticket RadosHost::call(const EitherWay& what, std::string_view object, const SharedRequest& payload,
                       const Done& done) {
  if (object.empty()) {
    done(-EINVAL, {});
    return kNoTicket;
  }
  const ClassCall in_osd = {what.class_name, what.method.name, what.method.flags};
  const Way way = *what.way;
  if (way == Way::kClassAlone) return call_class(in_osd, object, payload, done);
  if (way == Way::kClientSide) {
    return client_side_->submit(object, what.method, what.client_side_payload, false, done) |
           kClientSideTicket;
  }
  return call_class(in_osd, object, payload,
                    [client_side = client_side_, what, object = std::string(object), done](
                        int code, Buffer reply) {
                      const bool refused = code == -EOPNOTSUPP || code == -EPERM;
                      if (!refused) {
                        note(what.way.get(), code, Way::kClass);
                        done(code, std::move(reply));
                        return;
                      }
                      client_side->submit(
                          object, what.method, what.client_side_payload, false,
                          [what, code, done](int client_side_code, Buffer client_side_reply) {
                            note(what.way.get(), client_side_code, Way::kClientSide);
                            done(client_side_code == -EPERM ? code : client_side_code,
                                 std::move(client_side_reply));
                          });
                    });
}

// What an object answers, or that there is none, tells that it can be done this way. The first one
// decides.
void RadosHost::note(std::atomic<Way>* way, int code, Way tried) {
  Way unknown = Way::kUnknown;
  if (code >= 0 || code == -ENOENT) way->compare_exchange_strong(unknown, tried);
}

Ticket RadosHost::begin(const Start& start, RadosCall::Finish finish) {
  std::shared_lock<std::shared_mutex> lock(handles_mutex_);
  if (closing_) {
    lock.unlock();
    finish(-ECANCELED, nullptr);
    return kNoTicket;
  }
  int error = 0;
  const auto call = begin_call(
      outstanding_, [&](rados_completion_t completion) { return start(io_.get(), completion); },
      std::move(finish), &error);
  lock.unlock();
  if (error != 0) call->finish(error, call->completion);
  return call->ticket;
}

void RadosHost::notify(std::string_view object) { notifier_->notify(object); }

Ticket RadosHost::watch(std::string_view object, uint64_t seen, Done done) {
  return watches_->wait(object, seen, std::move(done)) | kWatchTicket;
}

void RadosHost::remove_watched(std::string_view object, Done done) {
  const std::string name(object);
  begin(
      [&](rados_ioctx_t io, rados_completion_t completion) {
        const auto operation = new_write_op();
        librados().write_op_remove(operation.get());
        return librados().aio_write_op_operate(operation.get(), io, completion, name.c_str(),
                                               nullptr, kFullForce);
      },
      [done = std::move(done)](int error, rados_completion_t) {
        done(error == -ENOENT ? 0 : error, {});
      });
}

void RadosHost::give_up(Ticket ticket) {
  if ((ticket & kClientSideTicket) != 0) {
    client_side_->give_up(ticket & ~kClientSideTicket);
  } else if ((ticket & kWatchTicket) != 0) {
    watches_->give_up(ticket & ~kWatchTicket);
  } else {
    cancel(ticket);
  }
}

void RadosHost::cancel(Ticket ticket) {
  const std::shared_lock<std::shared_mutex> lock(handles_mutex_);
  const std::shared_ptr<RadosCall> call = closing_ ? nullptr : outstanding_->find(ticket);
  if (call != nullptr) librados().aio_cancel(io_.get(), call->completion);
}

// librados' C interface gives a call in a writing operation no room for a reply, and one in a reading
// operation does. Both kinds of operation are one in librados, so both take the latter.
Ticket RadosHost::call_class(const ClassCall& what, std::string_view object,
                             const SharedRequest& payload, Done done) {
  const bool writes = (what.flags & kWrite) != 0;
  const std::string name(object);
  const auto reply = std::make_shared<ClassReply>();
  return begin(
      [&](rados_ioctx_t io, rados_completion_t completion) {
        const auto operation = writes ? new_write_op() : new_read_op();
        librados().read_op_exec(operation.get(), what.class_name, what.method, payload->data(),
                                payload->size(), &reply->bytes, &reply->size, &reply->code);
        if (!writes) {
          return librados().aio_read_op_operate(operation.get(), io, completion, name.c_str(), 0);
        }
        return librados().aio_write_op_operate(operation.get(), io, completion, name.c_str(),
                                               nullptr, kReturnVec | flags_when_full(what.flags));
      },
      [reply, done = std::move(done)](int error, rados_completion_t) {
        const int code = error < 0 ? error : reply->code;
        done(code, code >= 0 ? reply->take() : Buffer());
      });
}

void RadosHost::close() {
  const auto deadline = std::chrono::steady_clock::now() + kCloseTimeout;
  if (closing_.exchange(true)) return;
  client_side_->close();
  notifier_->close();
  watches_->close();
  // First beside those who are just starting operations: librados may hold them up until others
  // end.
  outstanding_->cancel_all(io_.get(), deadline);
  {
    const std::unique_lock<std::shared_mutex> lock(handles_mutex_);
    // An operation that can't even be cancelled may still come back: the handle is left to it.
    if (!outstanding_->cancel_all(io_.get(), deadline)) new RadosHandle(io_);
    io_.reset();
  }
  client_side_->settle();  // its threads find this host closing
}

}  // namespace zlog
