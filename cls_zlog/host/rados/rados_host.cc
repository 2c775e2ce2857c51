#include "cls_zlog/host/rados/rados_host.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "cls_zlog/host/client_side/lock_class.h"
#include "cls_zlog/host/large_blocks.h"
#include "cls_zlog/host/listing.h"
#include "cls_zlog/host/rados/listing.h"
#include "cls_zlog/host/rados/replicas.h"
#include "cls_zlog/host/signal_masked_thread.h"

namespace zlog {
namespace {

constexpr int kReplicasAskedMax = 4;  // at the same time

// The first release whose OSDs return the reply of a writing method (OPERATION_RETURNVEC).
constexpr int kOctopus = 15;

// The bits of tickets of the client-side host, and of watches.
constexpr Ticket kClientSideTicket = Ticket{1} << 63;
constexpr Ticket kWatchTicket = Ticket{1} << 62;

constexpr size_t kFsidBytes = 36;

// Encodes key-value pairs for librados. A NUL follows each key and each value, and another NUL
// follows the last pair.
std::string pairs(const std::map<std::string, std::string>& words) {
  std::string out;
  for (const auto& [key, value] : words) {
    out.append(key).push_back('\0');
    out.append(value).push_back('\0');
  }
  return out;
}

// Takes one of `max` places, or returns nullptr if all are taken. The place is given back when the
// last copy of the result is destroyed.
std::shared_ptr<void> take_place(const std::shared_ptr<std::atomic<int>>& taken, int max) {
  const std::shared_ptr<void> place(taken.get(), [taken](void*) { --*taken; });
  return ++*taken <= max ? place : nullptr;
}

}  // namespace

RadosHost::RadosHost(RadosHandle io, ClassUse class_use)
    : io_(std::make_shared<RadosIo>(std::move(io))),
      client_(librados().get_instance_id(cluster())),
      client_side_(std::make_shared<ClientSideHost>(io_)),
      way_(std::make_shared<std::atomic<Way>>(class_use == ClassUse::kAuto    ? Way::kUnknown
                                              : class_use == ClassUse::kNever ? Way::kClientSide
                                                                              : Way::kClassAlone)),
      lock_way_(std::make_shared<std::atomic<Way>>(
          class_use == ClassUse::kRequire ? Way::kClassAlone : Way::kUnknown)),
      notifier_(std::make_shared<RadosNotifier>(io_)),
      watches_(std::make_shared<RadosWatches>(io_)) {
  keep_large_blocks();
}

RadosHost::~RadosHost() { close(); }

int RadosHost::share(rados_ioctx_t ioctx, ClassUse class_use, std::unique_ptr<RadosHost>* host) {
  RadosHandle io;
  if (const int error = copy_of(ioctx, &io)) return error;
  host->reset(new RadosHost(std::move(io), class_use));
  return (*host)->check_release();
}

rados_t RadosHost::cluster() const { return librados().ioctx_get_cluster(io_->io()); }

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
  return io_->use([&](const RadosHandle&) {
    return librados().service_register(cluster(), service.c_str(), daemon.c_str(),
                                       pairs(metadata).c_str());
  });
}

int RadosHost::update_service(const std::map<std::string, std::string>& status) {
  return io_->use([&](const RadosHandle&) {
    return librados().service_update_status(cluster(), pairs(status).c_str());
  });
}

template <typename Work>
void RadosHost::start_thread(const Done& done, Work work) {
  const int error = io_->use([&](const RadosHandle& io) {
    start_signal_masked_thread([io, work = std::move(work)]() mutable { work(io.get()); }).detach();
    return 0;
  });
  if (error != 0) refuse(done, error);
}

void RadosHost::ask_monitor(std::string_view command, Done done) {
  std::shared_ptr<void> place = take_place(monitors_asked_, 1);
  if (place == nullptr) {
    refuse(done, -EBUSY);
    return;
  }
  start_thread(done, [place, command = std::string(command), done](rados_ioctx_t io) mutable {
    const char* line = command.c_str();
    char *answer = nullptr, *words = nullptr;
    size_t answer_size = 0, words_size = 0;
    const int error = librados().mon_command(librados().ioctx_get_cluster(io), &line, 1, nullptr, 0,
                                             &answer, &answer_size, &words, &words_size);
    place.reset();  // first, since the caller may ask again at once
    const Buffer replied = taken(answer, answer_size), said = taken(words, words_size);
    done(error, error == 0 ? replied : said);
  });
}

// A page covers objects of all names in the namespace.
void RadosHost::list(std::string_view prefix, std::string_view after, Done done) {
  start_thread(done,
               [prefix = std::string(prefix), after = std::string(after), done](rados_ioctx_t io) {
                 Listing page;
                 page.answer(list_page(io, prefix, after, &page), done);
               });
}

// In a thread of its own, since it runs several operations one after the other.
void RadosHost::ask_replica(Submission submission) {
  const Method* found = find_method(submission.method);
  const bool reads = found != nullptr && (found->flags & kWrite) == 0;
  const auto place = reads ? take_place(replicas_asked_, kReplicasAskedMax) : nullptr;
  if (place == nullptr) {
    refuse(submission.done, reads ? -EBUSY : -EOPNOTSUPP);
    return;
  }
  start_thread(submission.done, [client_side = client_side() ? client_side_ : nullptr,
                                 object = std::string(submission.object), found, place,
                                 payload = std::move(submission.payload),
                                 done = submission.done](rados_ioctx_t io) {
    stir(io, object, client_side != nullptr);
    if (client_side == nullptr) {
      run_at_replica(io, object, found->name, payload->bytes(), done);
      return;
    }
    client_side->submit(
        object, *found, payload, true,
        [place, done](int code, const Buffer& reply) { done(code, replica_reply(0, reply)); });
  });
}

Ticket RadosHost::submit(Submission submission) {
  if (const Method* found = find_method(submission.method)) {
    const EitherWay what = {kClassName, *found, way_, submission.payload};
    return call(what, std::move(submission));
  }
  const std::string name(submission.method);  // the OSD refuses an unknown one
  return call_class(kClassName, {name.c_str(), kRead, nullptr}, submission);
}

Ticket RadosHost::lock(Submission submission) {
  const Method* found = find_lock_method(submission.method);
  if (found == nullptr) return refuse(submission.done, -EOPNOTSUPP);
  SharedRequest named = lock_request(client_, submission.payload->bytes());
  return call({"lock", *found, lock_way_, std::move(named)}, std::move(submission));
}

// Each OSD serves its own objects, so a reply shows only for this object whether the OSDs can run
// the method.
Ticket RadosHost::call(const EitherWay& what, Submission submission) {
  if (submission.object.empty()) return refuse(submission.done, -EINVAL);
  const Way way = *what.way;
  if (way == Way::kClassAlone) return call_class(what.class_name, what.method, submission);
  const auto in_client = [client_side = client_side_, what,
                          object = std::string(submission.object)](const Done& answer) {
    return client_side->submit(object, what.method, what.client_side_payload, false, answer);
  };
  if (way == Way::kClientSide) return in_client(submission.done) | kClientSideTicket;
  submission.done = [in_client, way = what.way, done = std::move(submission.done)](int code,
                                                                                   Buffer reply) {
    if (code != -EOPNOTSUPP && code != -EPERM) {
      note(way.get(), code, Way::kClass);
      done(code, std::move(reply));
      return;
    }
    in_client([way, refusal = code, done](int client_side_code, Buffer client_side_reply) {
      note(way.get(), client_side_code, Way::kClientSide);
      done(client_side_code == -EPERM ? refusal : client_side_code, std::move(client_side_reply));
    });
  };
  return call_class(what.class_name, what.method, submission);
}

// Remembers the first way that works. It works if the code is a Code, or the error that the object
// does not exist.
void RadosHost::note(std::atomic<Way>* way, int code, Way tried) {
  Way unknown = Way::kUnknown;
  if (code >= 0 || code == -ENOENT) way->compare_exchange_strong(unknown, tried);
}

void RadosHost::notify(std::string_view object) { notifier_->notify(object); }

Ticket RadosHost::watch(std::string_view object, uint64_t seen, Done done) {
  return watches_->wait(object, seen, std::move(done)) | kWatchTicket;
}

void RadosHost::remove_watched(std::string_view object, Done done) {
  const std::string name(object);
  io_->begin(
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
    io_->give_up(ticket);
  }
}

// In librados' C interface, only a class call in a read operation can return a reply. Writing
// methods use that call too, because both kinds of operation have the same type inside librados.
Ticket RadosHost::call_class(const char* class_name, const Method& method,
                             const Submission& submission) {
  // As if the OSD lacked the class: the ClientSideHost then runs the method, if it may.
  if (librados().read_op_exec == nullptr) return refuse(submission.done, -EOPNOTSUPP);
  const bool writes = (method.flags & kWrite) != 0;
  const std::string name(submission.object);
  const auto reply = std::make_shared<ClassReply>();
  return io_->begin(
      [&](rados_ioctx_t io, rados_completion_t completion) {
        const auto operation = writes ? new_write_op() : new_read_op();
        librados().read_op_exec(operation.get(), class_name, method.name,
                                submission.payload->data(), submission.payload->size(),
                                &reply->bytes, &reply->size, &reply->code);
        if (!writes) {
          return librados().aio_read_op_operate(operation.get(), io, completion, name.c_str(), 0);
        }
        return librados().aio_write_op_operate(operation.get(), io, completion, name.c_str(),
                                               nullptr, kReturnVec | flags_when_full(method.flags));
      },
      [reply, done = submission.done](int error, rados_completion_t) {
        const int code = error < 0 ? error : reply->code;
        done(code, code >= 0 ? reply->take() : Buffer());
      });
}

void RadosHost::close() {
  if (!io_->stop()) return;
  client_side_->close();
  notifier_->close();
  watches_->close();
  io_->close();
}

}  // namespace zlog
