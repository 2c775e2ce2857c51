#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "cls_zlog/base/spacing.h"
#include "cls_zlog/client/append_ids.h"

namespace zlog {

// The positions first, first + step, … below `end`. Of an object with a unit above 1 a row stays
// within one.
struct AuditRow {
  uint64_t first = 0;
  uint64_t end = 0;
  uint32_t step = 1;
};

// An append, and a position at which it stands.
struct AuditAppend {
  AppendId id;
  uint64_t position = 0;
};

// What an audit learns of a log's positions, a window of them at a time and upwards.
//
// A window is begin(), then for each of its objects add() until that has told of all positions, or
// rest() for those of which it can't; then finish(), which takes stock in the order of
// the positions. Only so do the appends of a writer come as it counted them, and holes that lie
// side by side in different objects become one.
class Audit {
 public:
  // What a walk over the log is for.
  enum class Pass {
    kAll,      // everything; the first one
    kAppends,  // the appends that earlier ones had no room for
    kSearch,   // where the appends stand that are searched for
  };

  // What a position holds: EntryState, and that it is not known.
  enum class State : uint8_t {
    kWritten,
    kUnwritten,
    kFilled,
    kTrimmed,
    kLost,
    kUnreadable,
    kUnknown
  };

  // Positions by what they hold, in all windows.
  struct Counts {
    uint64_t entries = 0;
    uint64_t bytes = 0;  // data of the entries
    uint64_t filled = 0;
    uint64_t trimmed = 0;
    uint64_t unwritten = 0;
    uint64_t lost = 0;
    uint64_t unreadable = 0;
    uint64_t unknown = 0;
  };

  // At most `intervals_max` intervals of appends are kept (some 80 bytes each; see AppendIds).
  explicit Audit(size_t intervals_max) : ids_(intervals_max) {}

  // Begins with the positions [start, end) of a stripe of this spacing.
  void begin(Pass pass, uint64_t start, uint64_t end, const Spacing& spacing);

  // Takes in a reply to `verify` about an object's positions in the window from `first` on. 0, and
  // in `count` how many it was about; -EINVAL when it is malformed, kStoredTooNew when it is of a
  // later version.
  int add(std::string_view reply, uint64_t first, uint32_t* count);

  // Takes it that an object's positions in the window from `first` on are all in this state.
  void rest(uint64_t first, State state);

  void finish();

  const Counts& counts() const { return counts_; }

  // What the last window had. Lost and unreadable rows are of one object each; holes have step 1.
  const std::vector<AuditRow>& lost() const { return lost_.rows; }
  const std::vector<AuditRow>& unreadable() const { return unreadable_.rows; }
  const std::vector<AuditRow>& holes() const { return holes_; }

  // Appends of the last window that were seen before, further down; of kSearch those searched for.
  const std::vector<AuditAppend>& found() const { return found_; }

  // Goes on to the appends that there was no room for; false when there are none.
  bool next_part() { return ids_.next_part(); }

  void search_for(std::set<AppendId> ids) { wanted_ = std::move(ids); }

 private:
  struct Slot {
    State state = State::kUnknown;
    bool has_id = false;
    AppendId id;
  };

  // Positions of one fate, a row for as long as an object's follow each other.
  struct Fate {
    std::vector<AuditRow> rows;
    std::vector<size_t> open;  // by object: one more than the index of its last row

    void begin(uint32_t width);
    void add(uint64_t position, const Spacing& spacing);
  };

  void note(State state, size_t at);

  AppendIds ids_;
  std::set<AppendId> wanted_;
  Counts counts_;
  Pass pass_ = Pass::kAll;
  uint64_t start_ = 0;
  Spacing spacing_;
  std::vector<Slot> slots_;
  Fate lost_;
  Fate unreadable_;
  std::vector<AuditRow> holes_;
  std::vector<AuditAppend> found_;
};

}  // namespace zlog
