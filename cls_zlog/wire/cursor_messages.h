#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/stripe_messages.h"

// Requests and replies of the methods on a log's cursors, for both sides. Every request names the
// log by its id too: a client that still has a removed log open must not move the cursors of a new
// log of the same name.
namespace zlog {

// What cursor_commit does to a cursor that is there, or not. The values are on the wire.
enum class CommitMode : unsigned char {
  kAdvance = 0,  // moves it forward; it has to be there
  kCreate = 1,   // makes it; it must not be there
  kSet = 2,      // puts it anywhere, whether it was there or not
};

struct CursorCommitRequest {
  uint64_t log_id = 0;
  std::string_view name;  // the cursor's
  CommitMode mode = CommitMode::kAdvance;
  uint64_t position = 0;   // the next one to read
  uint64_t timestamp = 0;  // µs since 1970, by the client's clock

  template <typename V>
  void each(V& v) {
    v("log_id", log_id);
    v("name", name, wire::name());
    v("mode", mode, at_most(CommitMode::kSet));
    v("position", position, wire::position_or_end());
    v("timestamp", timestamp);
  }
};

// cursor_read, cursor_remove.
struct CursorRequest {
  uint64_t log_id = 0;
  std::string_view name;

  template <typename V>
  void each(V& v) {
    v("log_id", log_id);
    v("name", name, wire::name());
  }
};

// cursor_read. Also stored.
struct CursorReply {
  uint64_t position = 0;
  uint64_t created = 0;  // µs since 1970
  uint64_t updated = 0;  // when it was last committed
  wire::Further further;

  template <typename V>
  void each(V& v) {
    v("position", position, wire::position_or_end());
    v("created", created);
    v("updated", updated);
  }
};

struct NamedCursor {
  std::string name;
  uint64_t position = 0;
  uint64_t created = 0;
  uint64_t updated = 0;

  template <typename V>
  void each(V& v) {
    v("name", name, wire::name());
    v("position", position, wire::position_or_end());
    v("created", created);
    v("updated", updated);
  }
};

struct CursorListReply {
  bool more = false;
  std::vector<NamedCursor> cursors;  // ascending by name

  template <typename V>
  void each(V& v) {
    v("more", more);
    v("cursors", cursors, at_most(limits::cursors_max));
  }
};

}  // namespace zlog
