#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cls_zlog/host/async_host.h"
#include "cls_zlog/methods.h"

namespace zlog {

// An operation that waits for its turn.
struct Operation {
  std::string object;
  const Method* method;
  SharedRequest payload;
  Done done;
};

// A thread that takes operations in the order in which they came, as many at once as are waiting.
//
// Life: idle (no thread) → running, from the first operation on → stopped. Operations that come
// after stop() get ECANCELED.
class Worker {
 public:
  // `carry_out` is called on the thread, and must call every operation's `done` once. It must own
  // whatever it uses: the thread may outlive the worker (see stop()).
  using CarryOut = std::function<void(std::vector<Operation>& batch)>;
  explicit Worker(CarryOut carry_out);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Operations that come together are carried out together, within the limits of a batch.
  void push(std::vector<Operation> operations);

  // Cancels what has not begun and waits for what has; for a few seconds at most, then it is left
  // alone (a stopped process may hold the store's lock for ever).
  void stop();

 private:
  struct State;
  static void loop(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace zlog
