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

// Runs the methods in this process, with operations that every cluster has. The OSDs do not need
// the class.
//
// A method runs on an optimistic read set of its object. If the method needs more, the host reads
// it and runs the method again. Then the changes are written together if the object still has the
// same version; otherwise everything is repeated. Each call is therefore one atomic step, as in an
// OSD, and clients that use the class and clients that use this host may share objects
// (docs/design/object-class.md).
//
// States of a call that changes the object: waiting (for its turn) → reading ⇄ running → writing →
// answered, or reading again after a random pause if another client was faster. A read-only call
// does not wait for a turn. A call may be given up at any time.
class ClientSideHost : public std::enable_shared_from_this<ClientSideHost> {
 public:
  // A shared_ptr must own the host, since operations of `store` share it. Close the host before
  // releasing it.
  explicit ClientSideHost(std::shared_ptr<ObjectStore> store) : store_(std::move(store)) {}

  // As in AsyncHost. If `replica` is set, a read-only method reads at replicas chosen at random.
  Ticket submit(std::string_view object, const Method& method, SharedRequest payload, bool replica,
                Done done);
  void give_up(Ticket ticket);

  // Gives up all calls, and ignores operations that `store` still has under way. A thread may still
  // use `store` once afterwards.
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
