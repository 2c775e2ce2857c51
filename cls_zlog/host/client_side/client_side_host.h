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

// Runs the methods in this process, over the operations that every cluster has. The OSDs need not
// have the class.
//
// A method runs on an optimistic read set of its object. If it asks for more, that is read, and the
// method is run again. Its changes are then written together, on condition that the object still has
// the same version; if not, everything is repeated. So each call is one atomic step, as in an OSD, and
// clients of the class and of this host may share objects (docs/design/object-class.md).
//
// Life of a call that changes: waiting (for its turn) → reading ⇄ running → writing → answered, or
// back to reading after a pause of random length if another client was faster. A call that only reads
// does not wait for a turn. A call may be given up at any time.
class ClientSideHost : public std::enable_shared_from_this<ClientSideHost> {
 public:
  // The host belongs to a shared_ptr, which operations of `store` share; its owner closes it before
  // releasing it.
  explicit ClientSideHost(std::shared_ptr<ObjectStore> store) : store_(std::move(store)) {}

  // As in AsyncHost. `replica`: a method that only reads does so at replicas chosen at random.
  Ticket submit(std::string_view object, const Method& method, SharedRequest payload, bool replica,
                Done done);
  void give_up(Ticket ticket);

  // Gives up all calls, and ignores what `store` still has under way. A thread may use `store` a
  // last time after that.
  void close();

 private:
  struct Call;
  struct Run;
  using CallPtr = std::shared_ptr<Call>;
  using RunPtr = std::shared_ptr<Run>;

  // Calls that wait for their turn to change an object, on which a run is under way.
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
