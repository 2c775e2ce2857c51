#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "cls_zlog/host/async_host.h"
#include "cls_zlog/host/client_side/client_side_host.h"
#include "cls_zlog/host/rados/calls.h"
#include "cls_zlog/host/rados/librados.h"
#include "cls_zlog/host/rados/notifier.h"
#include "cls_zlog/host/rados/watches.h"
#include "cls_zlog/methods.h"

namespace zlog {

// Where methods run: in the OSDs, which need the class for that, or in this process.
enum class ClassUse {
  kAuto,     // in the OSDs; where one has no class, or this client no leave to use it, here
  kRequire,  // in the OSDs
  kNever,    // in this process
};

// Where on which cluster the objects live.
struct RadosTarget {
  std::string conf;    // path of ceph.conf; empty: librados looks in its usual places
  std::string client;  // the client's id without "client."; empty: librados' default
  std::string pool;
  std::string nspace;      // namespace in the pool
  unsigned timeout_s = 0;  // seconds for connecting and for every answer of a monitor
  ClassUse class_use = ClassUse::kAuto;
};

// Which method of which class an operation runs.
struct ClassCall {
  const char* class_name;
  const char* method;
  int flags;  // MethodFlags
};

// The OSDs of a cluster as hosts: every operation is one call of the class's method in librados, or
// is left to a ClientSideHost. Which of both, the first answers say if the caller does not. An OSD that
// lacks the class, or has one without the method, refuses a call before it does anything: it is then
// left to the ClientSideHost too, as it may be, since both make each call one step.
//
// Completions come on librados' threads; results belong to the operation until then. An operation
// that is given up is taken from librados, which else would keep it, and send it again and again,
// for as long as the cluster does not answer or has no room; if an OSD has it already, it takes
// effect. Giving up does not reach a call that is left to the ClientSideHost after a refusal: that ends
// when the cluster answers, or with close(). librados copies a payload when it takes the operation.
class RadosHost final : public AsyncHost {
 public:
  // Uses the pool and namespace of an I/O context of the caller, whose cluster handle must outlive
  // this host. Its owner may change its namespace, or close it. Checks the OSDs' release too.
  static int share(rados_ioctx_t ioctx, ClassUse class_use, std::unique_ptr<RadosHost>* host);

  ~RadosHost() override;
  RadosHost(const RadosHost&) = delete;
  RadosHost& operator=(const RadosHost&) = delete;

  Ticket submit(std::string_view object, std::string_view method, SharedRequest payload,
                Done done) override;
  Ticket lock(std::string_view object, std::string_view method, SharedRequest payload,
              Done done) override;
  // In threads, of which there are a few: EBUSY beyond.
  void ask_replica(std::string_view object, std::string_view method, SharedRequest payload,
                   Done done) override;
  // Lists in a thread of its own: librados lists in the caller's only.
  void list(std::string_view prefix, std::string_view after, Done done) override;
  // One question at a time (EBUSY): monitors may take long to answer.
  void ask_monitor(std::string_view command, Done done) override;
  void notify(std::string_view object) override;
  Ticket watch(std::string_view object, uint64_t seen, Done done) override;
  void remove_watched(std::string_view object, Done done) override;
  void give_up(Ticket ticket) override;
  void close() override;

  // Whether methods run in this process, as far as it is known yet.
  bool client_side() const { return *way_ == Way::kClientSide; }

  // Tells which cluster it is, without asking it: the fsid.
  int fsid(std::string* out);

  // Makes this process show up in `ceph -s`, as long as it lives: one of the daemons of `service`.
  // Both return 0 also where no manager runs; EEXIST when the process is registered already.
  int register_service(const std::string& service, const std::string& daemon,
                       const std::map<std::string, std::string>& metadata);
  int update_service(const std::map<std::string, std::string>& status);

 private:
  friend class RadosConnecting;
  class Operations;
  enum class Way {
    kUnknown,
    kClassAlone,
    kClass,  // the client-side host for what OSDs refuse
    kClientSide
  };

  RadosHost(RadosHandle io, ClassUse class_use);
  rados_t cluster() const;
  // EPROTO unless every OSD that may be in the cluster is of a release that the protocol works with.
  int check_release();

  // Starts an operation of librados, and has its result.
  using Start = std::function<int(rados_ioctx_t io, rados_completion_t completion)>;
  Ticket begin(const Start& start, RadosCall::Finish finish);
  Ticket call_class(const ClassCall& what, std::string_view object, const SharedRequest& payload,
                    Done done);

  // A method that an OSD or the client-side host can run.
  struct EitherWay {
    const char* class_name;
    const Method& method;
    std::shared_ptr<std::atomic<Way>> way;
    SharedRequest client_side_payload;  // for the client-side host
  };
  Ticket call(const EitherWay& what, std::string_view object, const SharedRequest& payload,
              const Done& done);
  static void note(std::atomic<Way>* way, int code, Way tried);
  void cancel(Ticket ticket);

  const std::shared_ptr<RadosCalls> outstanding_;
  // Whether the monitors are being asked.
  const std::shared_ptr<std::atomic<bool>> asking_ = std::make_shared<std::atomic<bool>>(false);
  const std::shared_ptr<std::atomic<int>> replicas_asked_ = std::make_shared<std::atomic<int>>(0);
  std::atomic<bool> closing_{false};  // set first: nothing new is started
  std::shared_mutex handles_mutex_;   // shared: using the handle; alone: ending it
  RadosHandle io_;                    // with a share of the connection, where it is our own
  const uint64_t client_;             // its number, for OSDs
  const std::unique_ptr<ObjectStore> operations_;
  const std::shared_ptr<ClientSideHost> client_side_;
  const std::shared_ptr<std::atomic<Way>> way_;
  const std::shared_ptr<std::atomic<Way>> lock_way_;  // of Ceph's own class `lock`
  const std::shared_ptr<RadosNotifier> notifier_;
  const std::shared_ptr<RadosWatches> watches_;
};

// A connection in the making. The caller may stop waiting: the thread owns what it needs.
class RadosConnecting {
 public:
  // Begins to connect, in a thread of its own.
  static std::shared_ptr<RadosConnecting> start(const RadosTarget& target);

  // True once it has succeeded or failed; false when `timeout_ms` has passed.
  bool wait(int timeout_ms) { return finished_->wait(timeout_ms); }

  // Then: 0 or a negative errno, what it failed to do, and the host.
  int error() const { return finished_->code(); }
  std::string failed_step() const { return std::string(finished_->reply().bytes); }
  std::unique_ptr<RadosHost> take() { return std::move(host_); }

  // What the configuration says, if it could be read: where the key may be, and who the monitors
  // are.
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
