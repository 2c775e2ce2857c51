#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cls_zlog/wire/fields.h"
#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/read_reply.h"

// Request and reply of `select`: the entries with some tags.
namespace zlog {

struct SelectRequest {
  uint64_t epoch = 0;
  uint64_t start = 0;
  uint64_t end = 0;               // one past the last position to look at
  std::vector<std::string> tags;  // at least one
  bool all = false;               // entries that have all of them; else any
  bool reverse = false;           // from the end downwards
  uint32_t entries_max = 0;       // entries to stop after
  uint32_t bytes_max = 0;         // bytes of data to stop before; the first entry always comes
  bool with_ids = false;          // as in ReadRequest
  bool without_data = false;      // as in ReadRequest

  template <typename V>
  void each(V& v) {
    v("epoch", epoch);
    v("start", start, wire::position_or_end());
    v("end", end, wire::position_or_end());
    v("tags", tags, wire::between(1, limits::entry_tags_max));
    v("all", all);
    v("reverse", reverse);
    v("entries_max", entries_max, wire::between(1, limits::entries_max));
    v("bytes_max", bytes_max);
    v("with_ids", with_ids);
    v("without_data", without_data, wire::any().since(2));
  }
  bool valid() const {
    for (const std::string& tag : tags) {
      if (!valid_tag(tag)) return false;
    }
    return true;
  }
};

// Positions of the object in a row that may hide an entry with the tags.
struct SelectGap {
  uint64_t first = 0;
  uint64_t last = 0;
  EntryState state =
      EntryState::kUnwritten;  // or kLost, kUnreadable; kTrimmed: below the trim point

  template <typename V>
  void each(V& v) {
    v("first", first, wire::position());
    v("last", last, wire::position());
    v("state", state);
  }
};

// A decoded reply. Behind the frame is a read's reply about the positions, if there are any.
struct SelectReply {
  std::optional<uint64_t> highest;  // as in HighestReply
  // What was asked has been looked at below this position; in reverse, from this position on.
  uint64_t end = 0;
  std::vector<SelectGap> gaps;       // ascending; without those above `highest`
  uint32_t count = 0;                // entries
  wire::Column<uint64_t> positions;  // ascending; in reverse, descending
  ReadReply entries;

  template <typename V>
  void each(V& v) {
    v("highest", highest, wire::position());
    v("end", end, wire::position_or_end());
    v("gaps", gaps, wire::at_most(2 * limits::select_gaps_max));
    v("count", count, wire::at_most(limits::entries_max));
    v("positions", positions, wire::number_of(count));
  }
  bool take_data(std::string_view behind) {
    if (count == 0) return behind.empty();
    return wire::decode(behind, &entries) == wire::Decoded::kOk && entries.count == count;
  }
};

// tags_check, tags_rebuild.
struct TagsRequest {
  uint64_t epoch = 0;
  uint64_t start = 0;
  uint64_t end = 0;  // one past the last position to look at

  template <typename V>
  void each(V& v) {
    v("epoch", epoch);
    v("start", start, wire::position_or_end());
    v("end", end, wire::position_or_end());
  }
};

// A run of positions.
struct TagsWrong {
  uint64_t first = 0;
  uint64_t last = 0;

  template <typename V>
  void each(V& v) {
    v("first", first, wire::position());
    v("last", last, wire::position());
  }
};

struct TagsCheckReply {
  uint64_t end = 0;              // as asked for, or where a bounded part of the work ended
  uint64_t tags = 0;             // places in sound chunks
  std::vector<TagsWrong> wrong;  // of the object: what the index does not tell of, or not rightly

  template <typename V>
  void each(V& v) {
    v("end", end, wire::position_or_end());
    v("tags", tags);
    v("wrong", wrong, wire::at_most(limits::list_page_max));
  }
};

struct TagsRebuildReply {
  uint64_t end = 0;  // as asked for, or where a bounded part of the work ended

  template <typename V>
  void each(V& v) {
    v("end", end, wire::position_or_end());
  }
};

// A decoded reply of tags_list: entries with tags.
struct TagsListReply {
  uint64_t end = 0;                  // as asked for, or where a bounded part of the work ended
  uint32_t count = 0;                // entries
  wire::Column<uint64_t> positions;  // ascending
  Tags tags;                         // a name may come more than once

  template <typename V>
  void each(V& v) {
    v("end", end, wire::position_or_end());
    v("count", count, wire::at_most(limits::entries_max));
    v("positions", positions, wire::number_of(count));
    tags.each(v, count, 1, 2 * limits::tag_names_bytes_max);
  }
  bool valid() const { return tags.valid(count); }
};

struct TagsListReplyBuilder {
  uint64_t end = 0;
  std::string positions;
  uint32_t count = 0;
  TagsBuilder tags;

  void encode(std::string* out) const {
    wire::encode(TagsListReply{end, count, {positions.data(), count}, tags.tags()}, out);
  }
};

// Trims positions of [start, end), and gives space of that range back.
struct CompactRequest {
  uint64_t epoch = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  Runs runs;

  template <typename V>
  void each(V& v) {
    v("epoch", epoch);
    v("start", start, wire::position_or_end());
    v("end", end, wire::position_or_end());
    v("runs", runs);
  }
};

struct CompactReply {
  uint64_t end = 0;      // as asked for, or where a bounded part of the work ended
  uint32_t trimmed = 0;  // entries

  template <typename V>
  void each(V& v) {
    v("end", end, wire::position_or_end());
    v("trimmed", trimmed);
  }
};

// Builds a select's reply, all but the data, which goes behind it.
struct SelectReplyBuilder {
  SelectReply reply;  // but for count and positions
  std::vector<uint64_t> positions;
  ReadReplyBuilder entries;

  void encode(std::string* out) const {
    SelectReply told = reply;
    std::string column;
    for (const uint64_t position : positions) wire::append(&column, position);
    told.count = static_cast<uint32_t>(positions.size());
    told.positions = {column.data(), told.count};
    wire::encode(told, out);
    if (positions.empty()) return;
    std::string behind;
    entries.encode(&behind);
    out->append(behind);
  }
};

}  // namespace zlog
