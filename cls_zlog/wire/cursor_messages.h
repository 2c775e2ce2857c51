#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Requests and replies of the methods on a log's cursors, for both sides. The conventions are those
// of messages.h. Every request names the log by its id too: a client that still has a removed log
// open must not move the cursors of a new log of the same name.
namespace zlog {

// What cursor_commit does to a cursor that is there, or not. The values are on the wire.
enum class CommitMode : unsigned char {
  kAdvance = 0,  // moves it forward; it has to be there
  kCreate = 1,   // makes it; it must not be there
  kSet = 2,      // puts it anywhere, whether it was there or not
};

struct CursorCommitRequest {
  uint64_t log_id = 0;
  std::string_view name;    // the cursor's
  CommitMode mode = CommitMode::kAdvance;
  uint64_t position = 0;    // the next one to read
  uint64_t timestamp = 0;   // µs since 1970, by the client's clock

  std::string encode() const;
  static int decode(std::string_view bytes, CursorCommitRequest* out);
};

// cursor_read, cursor_remove.
struct CursorRequest {
  uint64_t log_id = 0;
  std::string_view name;

  std::string encode() const;
  static int decode(std::string_view bytes, CursorRequest* out);
};

struct CursorReadReply {
  uint64_t position = 0;
  uint64_t created = 0;  // µs since 1970
  uint64_t updated = 0;  // when it was last committed

  std::string encode() const;
  static int decode(std::string_view bytes, CursorReadReply* out);
};

struct CursorListRequest {
  uint64_t log_id = 0;
  std::string_view after;  // names above it; empty: from the first
  uint32_t count_max = 0;  // cursors in the reply, 1 to cursors_max

  std::string encode() const;
  static int decode(std::string_view bytes, CursorListRequest* out);
};

struct NamedCursor {
  std::string_view name;
  CursorReadReply cursor;
};

struct CursorListReply {
  bool more = false;
  std::vector<NamedCursor> cursors;  // ascending by name

  std::string encode() const;
  static int decode(std::string_view bytes, CursorListReply* out);
};

}  // namespace zlog
