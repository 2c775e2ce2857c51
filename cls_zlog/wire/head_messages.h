#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Requests and replies of the methods on the head object and on the directory object, for both
// sides. The conventions are those of messages.h; head_remove takes an EpochRequest.
namespace zlog {

// epoch_read, sequencer_find: nothing but the version.
std::string encode_empty();
int decode_empty(std::string_view bytes);

struct HeadCreateRequest {
  std::string_view name;  // the log's, see names.h
  uint64_t log_id = 0;    // tells this log from an earlier one of the same name

  std::string encode() const;
  static int decode(std::string_view bytes, HeadCreateRequest* out);
};

struct EpochNextRequest {
  uint32_t width = 0;  // of the stripe that may be made in this epoch, up to width_max; 0: none

  std::string encode() const;
  static int decode(std::string_view bytes, EpochNextRequest* out);
};

struct EpochNextReply {
  uint64_t epoch = 0;       // the counter's new value, nobody else's
  uint64_t tail_floor = 0;  // the tail of this epoch starts at or above it

  std::string encode() const;
  static int decode(std::string_view bytes, EpochNextReply* out);
};

struct EpochReadReply {
  uint64_t counter = 0;     // the last epoch handed out; 0 none
  uint64_t newest = 0;      // epoch of the newest view; 0 none
  uint64_t tail_floor = 0;
  uint64_t trim_point = 0;  // every position below it is trimmed
  uint64_t log_id = 0;

  std::string encode() const;
  static int decode(std::string_view bytes, EpochReadReply* out);
};

struct TailRaiseRequest {
  uint64_t log_id = 0;  // a client of a removed log raises no tail of a new one of its name
  uint64_t epoch = 0;
  uint64_t tail = 0;

  std::string encode() const;
  static int decode(std::string_view bytes, TailRaiseRequest* out);
};

// trim_point_raise. The reply is that of trim_to: whether archived stripes below the point are left.
struct TrimPointRequest {
  uint64_t log_id = 0;        // a client of a removed log trims no new one of its name
  uint64_t position = 0;      // everything below it counts as trimmed
  bool past_cursors = false;  // also what readers with a cursor have not read

  std::string encode() const;
  static int decode(std::string_view bytes, TrimPointRequest* out);
};

struct ViewProposeRequest {
  uint64_t base = 0;      // epoch of the view that this one was made from; 0 none
  std::string_view view;  // encoded, see view.h

  std::string encode() const;
  static int decode(std::string_view bytes, ViewProposeRequest* out);
};

struct ViewReadRequest {
  uint64_t from_epoch = 0;
  uint32_t count_max = 0;  // views in the reply, 1 to views_page_max
  bool latest = false;     // only the newest; from_epoch is ignored

  std::string encode() const;
  static int decode(std::string_view bytes, ViewReadRequest* out);
};

struct ViewReadReply {
  uint64_t counter = 0;
  uint64_t newest = 0;
  uint64_t tail_floor = 0;
  uint64_t trim_point = 0;
  uint64_t log_id = 0;
  bool more = false;                    // views above the last of these are left: ask again
  std::vector<std::string_view> views;  // encoded, ascending by epoch

  std::string encode() const;
  static int decode(std::string_view bytes, ViewReadReply* out);
};

// directory_add, directory_remove.
struct DirectoryEntryRequest {
  std::string_view name;
  uint64_t log_id = 0;  // remove: only this log's entry goes

  std::string encode() const;
  static int decode(std::string_view bytes, DirectoryEntryRequest* out);
};

struct DirectoryListRequest {
  std::string_view after;  // names above it; empty: from the first
  uint32_t count_max = 0;  // names in the reply, 1 to names_page_max

  std::string encode() const;
  static int decode(std::string_view bytes, DirectoryListRequest* out);
};

struct DirectoryListReply {
  bool more = false;
  std::vector<std::string_view> names;  // ascending

  std::string encode() const;
  static int decode(std::string_view bytes, DirectoryListReply* out);
};

// sequencer_announce and sequencer_withdraw (request), sequencer_find (reply; empty when there is
// none).
struct AddressMessage {
  std::string_view address;

  std::string encode() const;
  static int decode(std::string_view bytes, AddressMessage* out);
};

}  // namespace zlog
