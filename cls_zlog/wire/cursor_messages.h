#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/wire/stripe_messages.h"

// Requests and replies of the methods on a log's cursors.
namespace zlog {

// These values are sent on the wire.
enum class CommitMode : unsigned char {
  kAdvance = 0,  // moves an existing cursor forward
  kCreate = 1,   // creates a new cursor
  kSet = 2,      // moves or creates a cursor
};

// The request of cursor_read and cursor_remove.
struct CursorRequest : LogRequest {
  std::string_view name;

  ZLOG_FIELDS(v) {
    LogRequest::each(v);
    v("name", name, wire::name());
  }
};

struct CursorCommitRequest : CursorRequest {
  CommitMode mode = CommitMode::kAdvance;
  uint64_t position = 0;   // the next position to read
  uint64_t timestamp = 0;  // µs since 1970, by the client's clock

  ZLOG_FIELDS(v) {
    CursorRequest::each(v);
    v("mode", mode, at_most(CommitMode::kSet));
    v("position", position, wire::position_or_end());
    v("timestamp", timestamp);
  }
};

// The reply of cursor_read. The head object stores the same fields.
struct CursorReply {
  uint64_t position = 0;
  uint64_t created = 0;  // µs since 1970
  uint64_t updated = 0;  // time of the last commit

  ZLOG_FIELDS(v) {
    v("position", position, wire::position_or_end());
    v("created", created);
    v("updated", updated);
  }
};

struct NamedCursor : CursorReply {
  std::string name;

  ZLOG_FIELDS(v) {
    v("name", name, wire::name());
    CursorReply::each(v);
  }
};

struct CursorListReply : MoreReply {
  std::vector<NamedCursor> cursors;  // ascending by name

  ZLOG_FIELDS(v) {
    MoreReply::each(v);
    v("cursors", cursors, at_most(limits::cursors_max));
  }
};

}  // namespace zlog
