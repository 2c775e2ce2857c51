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

// Collects the results of an audit, which reads a log upwards in windows of positions.
//
// For each window, call begin(). Then call add() for each object until the replies cover all of its
// positions, or rest() if the object does not answer. Finally call finish(), which evaluates the
// window in the order of positions and so sees each writer's appends in order.
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

  // `intervals_max` is the limit of AppendIds. An interval takes some 80 bytes.
  explicit Audit(size_t intervals_max) : ids_(intervals_max) {}

  // Begins a window of positions [start, end), all in one stripe.
  void begin(Pass pass, uint64_t start, uint64_t end, const Striping& striping);

  // Adds an object's reply to `verify` for its positions from `first` on. Sets `count` to the
  // number of positions that the reply covers. Returns -EINVAL if the reply is malformed, and
  // kStoredTooNew if a later version sent it.
  int add(std::string_view reply, uint64_t first, uint32_t* count);

  // Sets the state of all of an object's positions in the window from `first` on.
  void rest(uint64_t first, State state);

  void finish();

  // Returns the number of positions in each state, followed by the total size of the entries' data.
  // Only the first pass over the log is counted.
  const std::vector<uint64_t>& counts() const { return counts_; }

  // Returns the positions of the last window that are in the given state. Each row contains
  // positions of only one object; for kUnwritten, each row is a range of the log.
  std::vector<AuditRow> rows(State state) const;

  // Returns the duplicates in the last window: appends that also occur at a lower position. In a
  // kSearch pass, returns the appends that were passed to search_for() instead.
  const std::vector<AuditAppend>& found() const { return found_; }

  // Continues with appends that were left out. Returns false if there are none.
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
