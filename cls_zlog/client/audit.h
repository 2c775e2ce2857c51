#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/base/striping.h"
#include "cls_zlog/client/append_ids.h"

namespace zlog {

// The positions first, first + step, … below `end`.
struct AuditRow {
  uint64_t first = 0;
  uint64_t end = 0;
  uint32_t step = 1;
};

// An append and its position.
struct AuditAppend {
  AppendId id;
  uint64_t position = 0;
};

// The results of an audit of a log, one window of positions after the other, upwards.
//
// For a window call begin(); for each object add() until it covers all positions, or rest() without an
// answer; then finish(), which evaluates the window in the order of the positions, so that a writer's
// appends come in order.
class Audit {
 public:
  // The purpose of a pass over the log.
  enum class Pass {
    kAll,      // everything; the first pass
    kAppends,  // the appends that earlier passes left out
    kSearch,   // the positions of the appends of search_for()
  };

  using State = EntryState;
  static constexpr auto kUnknown = static_cast<State>(6);  // no object has answered

  // `intervals_max`: of AppendIds, some 80 bytes each.
  explicit Audit(size_t intervals_max) : ids_(intervals_max) {}

  // Begins a window: positions [start, end) of a stripe.
  void begin(Pass pass, uint64_t start, uint64_t end, const Striping& striping);

  // Adds a reply to `verify` about an object's positions in the window, from `first` on; `count`:
  // how many it covers. -EINVAL: it is malformed; kStoredTooNew: it is of a later version.
  int add(std::string_view reply, uint64_t first, uint32_t* count);

  // Sets the state of an object's positions in the window, from `first` on.
  void rest(uint64_t first, State state);

  void finish();

  // The number of positions in each state, and then the bytes of the entries' data, in all windows of
  // the first pass.
  const std::vector<uint64_t>& counts() const { return counts_; }

  // The positions of the last window in a state. Each row is of one object; unwritten ones have step 1.
  std::vector<AuditRow> rows(State state) const;

  // Appends of the last window that also occur further down; in kSearch, the appends searched for.
  const std::vector<AuditAppend>& found() const { return found_; }

  // Continues with the appends that were left out; false: there are none.
  bool next_part() { return ids_.next_part(); }

  void search_for(std::set<AppendId> ids) { wanted_ = std::move(ids); }

 private:
  struct Slot {
    State state = kUnknown;
    bool has_id = false;
    AppendId id;
  };

  AppendIds ids_;
  std::set<AppendId> wanted_;
  std::vector<uint64_t> counts_ = std::vector<uint64_t>(static_cast<size_t>(kUnknown) + 2);
  Pass pass_ = Pass::kAll;
  uint64_t start_ = 0;
  Striping striping_;
  std::vector<Slot> slots_;
  std::vector<AuditAppend> found_;
};

}  // namespace zlog
