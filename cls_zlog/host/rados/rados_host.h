#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "cls_zlog/host/async_host.h"
#include "cls_zlog/host/client_side/client_side_host.h"
#include "cls_zlog/host/rados/io.h"
#include "cls_zlog/host/rados/librados.h"
#include "cls_zlog/host/rados/notifier.h"
#include "cls_zlog/host/rados/watches.h"
#include "cls_zlog/methods.h"

namespace zlog {

// Where methods run: in the OSDs, which then need the class, or in this process.
enum class ClassUse {
  kAuto,  // in the OSDs, or in this process if an OSD lacks the class or this client may not use it
  kRequire,  // in the OSDs
  kNever,    // in this process
};

// Which cluster stores the objects, and in which pool and namespace.
struct RadosTarget {
  std::string conf;    // path of ceph.conf; empty: librados looks in its usual places
  std::string client;  // the client's id without "client."; empty: librados' default
  std::string pool;
  std::string nspace;      // namespace in the pool
  unsigned timeout_s = 0;  // seconds for connecting and for every answer of a monitor
  ClassUse class_use = ClassUse::kAuto;
};

// Runs methods in the OSDs of a cluster or in this process, as ClassUse says. With kAuto, the host
// first tries the OSDs. An OSD that lacks the class or the method refuses a call before it does
// anything, and the host then runs the call in its ClientSideHost.
//
// Giving up an operation cancels it in librados, which would otherwise resend it as long as the
// cluster does not reply or has no space. An operation that has already reached an OSD still takes
// effect. A call that moved to the ClientSideHost after a refusal cannot be given up: it ends when
// the cluster replies, or with close().
class RadosHost final : public AsyncHost {
 public:
  // Makes a host for the pool and namespace of the caller's I/O context, which the caller can
  // change or close afterwards. The context's cluster handle must outlive the host. Returns EPROTO
  // if the cluster may have OSDs of an unsupported release.
  static int share(rados_ioctx_t ioctx, ClassUse class_use, std::unique_ptr<RadosHost>* host);

  ~RadosHost() override;

  Ticket submit(Submission submission) override;
  Ticket lock(Submission submission) override;
  // Each call uses a thread. Returns EBUSY if too many calls are in flight.
  void ask_replica(Submission submission) override;
  // Lists in a thread of its own, since librados can list only in the calling thread.
  void list(std::string_view prefix, std::string_view after, Done done) override;
  // Returns EBUSY if another command is in flight. Monitors may take long to reply.
  void ask_monitor(std::string_view command, Done done) override;
  void notify(std::string_view object) override;
  Ticket watch(std::string_view object, uint64_t seen, Done done) override;
  void remove_watched(std::string_view object, Done done) override;
  void give_up(Ticket ticket) override;
  void close() override;

  // Returns whether methods run in this process, as far as is known yet.
  bool client_side() const {
    return *way_ == Way::kClientSide || librados().read_op_exec == nullptr;
  }

  // Returns the id of the cluster, which is known without a request.
  int fsid(std::string* out);

  // register_service() lists this process in `ceph -s` as a daemon of `service` for as long as it
  // lives, or returns EEXIST if the process is already listed. update_service() sets its status
  // there. Both return 0 even if no manager is running.
  int register_service(const std::string& service, const std::string& daemon,
                       const std::map<std::string, std::string>& metadata);
  int update_service(const std::map<std::string, std::string>& status);

 private:
  friend class RadosConnecting;
  enum class Way {
    kUnknown,
    kClassAlone,
    kClass,  // the client-side host runs calls that OSDs refuse
    kClientSide
  };

  RadosHost(RadosHandle io, ClassUse class_use);
  rados_t cluster() const;
  // Returns EPROTO if the cluster may have OSDs of a release that does not support the protocol.
  int check_release();

  // Calls work(io) in a thread of its own. After close() it reports an error instead.
  template <typename Work>
  void start_thread(const Done& done, Work work);
  Ticket call_class(const char* class_name, const Method& method, const Submission& submission);

  // A method that an OSD or the client-side host can run.
  struct EitherWay {
    const char* class_name;
    const Method& method;
    std::shared_ptr<std::atomic<Way>> way;
    SharedRequest client_side_payload;
  };
  Ticket call(const EitherWay& what, Submission submission);
  static void note(std::atomic<Way>* way, int code, Way tried);

  const std::shared_ptr<RadosIo> io_;
  const std::shared_ptr<std::atomic<int>> monitors_asked_ = std::make_shared<std::atomic<int>>(0);
  const std::shared_ptr<std::atomic<int>> replicas_asked_ = std::make_shared<std::atomic<int>>(0);
  const uint64_t client_;  // its number, for OSDs
  const std::shared_ptr<ClientSideHost> client_side_;
  const std::shared_ptr<std::atomic<Way>> way_;
  const std::shared_ptr<std::atomic<Way>> lock_way_;  // of Ceph's own class `lock`
  const std::shared_ptr<RadosNotifier> notifier_;
  const std::shared_ptr<RadosWatches> watches_;
};

// Connects to a cluster. The caller may stop waiting at any time.
class RadosConnecting {
 public:
  // Begins to connect in a separate thread.
  static std::shared_ptr<RadosConnecting> start(const RadosTarget& target);

  // Returns true once connecting has succeeded or failed, and false after `timeout_ms`.
  bool wait(int timeout_ms) { return finished_->wait(timeout_ms); }

  // Valid once wait() has returned true: 0 or a negative errno, the failed step, and the host.
  int error() const { return finished_->code(); }
  std::string failed_step() const { return std::string(finished_->reply().bytes); }
  std::unique_ptr<RadosHost> take() { return std::move(host_); }

  // The keyring's paths and the monitors' addresses in Ceph's configuration. Empty if the
  // configuration could not be read.
  const std::string& keyring() const { return keyring_; }
  const std::string& monitors() const { return monitors_; }

 private:
  int connect(const RadosTarget& target, std::string* step);

  const std::shared_ptr<Pending> finished_ = std::make_shared<Pending>();
  std::unique_ptr<RadosHost> host_;
  std::string keyring_;
  std::string monitors_;
};

}  // namespace zlog
