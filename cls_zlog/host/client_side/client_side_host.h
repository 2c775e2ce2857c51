#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "cls_zlog/host/async_host.h"
#include "cls_zlog/host/client_side/object_store.h"
#include "cls_zlog/host/timer.h"
#include "cls_zlog/methods.h"

namespace zlog {

class ReadSet;

// Runs the methods in this process, for clusters whose OSDs lack the class. It uses only operations
// that every cluster supports.
//
// The host runs a method on those parts of the object that it has read (ReadSet). If the method
// needs other parts, the host reads them and runs the method again. It then writes all changes in
// one step, provided that the object still has the same version; otherwise it starts over. Each
// call is therefore atomic, as in an OSD, and clients that use the class can share the objects
// (docs/design/object-class.md). Calls in this process that change the same object take turns.
class ClientSideHost : public std::enable_shared_from_this<ClientSideHost> {
 public:
  // The host must be owned by a shared_ptr, because operations in flight keep it alive. Call
  // close() before releasing it.
  explicit ClientSideHost(std::shared_ptr<ObjectStore> store) : store_(std::move(store)) {}

  // As in AsyncHost. If `replica` is set, a read-only method reads at replicas chosen at random.
  Ticket submit(std::string_view object, const Method& method, SharedRequest payload, bool replica,
                Done done);
  void give_up(Ticket ticket);

  // Gives up all calls, and ignores the results of operations in flight. A call that another thread
  // is starting may still use `store` once after this returns.
  void close();

 private:
  struct Call;
  struct Run;
  using CallPtr = std::shared_ptr<Call>;
  using RunPtr = std::shared_ptr<Run>;

  // Calls that wait for their turn to change an object while a run on it is under way.
  using Line = std::deque<CallPtr>;

  RunPtr make_run(const CallPtr& first, bool replica);
  void begin(const RunPtr& run);
  void go_on(const RunPtr& run);
  void read(const RunPtr& run, Reads missing);
  void was_read(const RunPtr& run, int error, ObjectVersion known);
  void join(const RunPtr& run, ReadSet* read_set);
  CallPtr take_along(const RunPtr& run, size_t bytes_max);
  void send_back(const RunPtr& run);
  void write(const RunPtr& run, ReadSet* read_set);
  void finish(const RunPtr& run, int error);
  void repeat(const RunPtr& run);
  template <typename Start>
  void take_step(const RunPtr& run, Start start);
  bool deserted(const Run& run) const;
  void cache(const std::string& object, uint64_t version, const Attrs& attrs);

  const std::shared_ptr<ObjectStore> store_;
  std::mutex mutex_;
  bool closed_ = false;
  Ticket last_ = kNoTicket;
  std::unordered_map<Ticket, CallPtr> calls_;             // that are not answered
  std::unordered_map<std::string, Line> lines_;           // of the objects that are being changed
  std::unordered_map<std::string, ObjectVersion> cache_;  // versions and attributes
  Timer timer_;
};

}  // namespace zlog
