#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cls_zlog/host/async_host.h"
#include "cls_zlog/host/client_side/object_store.h"
#include "cls_zlog/methods.h"

namespace zlog {

// A host that runs the methods in this process, on objects of a cluster whose OSDs need not have
// the class: over the operations that every cluster has.
//
// A method runs on what has been read of its object, all of it at one version. If it asks for more,
// that is read, and it is run again. Its changes then go out together, on condition that the object
// still has this version; if not, all begins anew. So each call is one atomic step, as in an OSD,
// and clients of the class and of this host may share objects.
//
// What an object looked like last is remembered: a writer beside no other one needs one round trip.
// Changes of one object take turns. Those that wait go out together, if all but the first need
// nothing but attributes.
//
// Life of a call that changes: waiting (for its turn) → reading ⇄ running → writing → answered, or
// back to reading after a pause of random length when another client was faster. One that only
// reads waits for no turn. It may be given up at any time.
class PlainHost {
 public:
  // `stock` must outlive the host or its settle(), and make no more calls once the host is closed.
  explicit PlainHost(Stock& stock);
  ~PlainHost();
  PlainHost(const PlainHost&) = delete;
  PlainHost& operator=(const PlainHost&) = delete;

  // As AsyncHost has them. `copy`: a method that only reads does so at copies chosen at random.
  Ticket submit(std::string_view object, const Method& method, SharedRequest payload, bool copy,
                Done done);
  void give_up(Ticket ticket);

  // Gives all up. What `stock` still has under way comes to nothing.
  void close();

  // After close(): returns once no thread is about to use `stock`, or within it.
  void settle();

 private:
  class Core;
  const std::shared_ptr<Core> core_;
};

}  // namespace zlog
