#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/read_reply.h"
#include "cls_zlog/wire/stripe_messages.h"

// Requests and replies of the methods on tags of a stripe object.
namespace zlog {

struct SelectRequest : RangeRequest {
  std::vector<std::string> tags;
  bool all = false;           // entries with all of the tags, not with any of them
  bool reverse = false;       // from the end downwards
  uint32_t entries_max = 0;   // entries in the reply
  uint32_t bytes_max = 0;     // bytes of data; the first entry is returned whatever its size
  bool with_ids = false;      // as in ReadRequest
  bool without_data = false;  // as in ReadRequest

  ZLOG_FIELDS(v) {
    RangeRequest::each(v);
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

// Positions that may hide an entry with the tags.
struct SelectGap : SpanMessage {
  EntryState state = EntryState::kUnwritten;  // or kLost, kUnreadable, or kTrimmed (by trim_to)

  ZLOG_FIELDS(v) {
    SpanMessage::each(v);
    v("state", state);
  }
};

// A decoded reply. If it has positions, a read's reply about them follows the frame.
struct SelectReply {
  std::optional<uint64_t> highest;   // as in HighestReply
  uint64_t end = 0;                  // how far the search got, up or down
  std::vector<SelectGap> gaps;       // ascending, none above `highest`
  uint32_t count = 0;                // entries
  wire::Column<uint64_t> positions;  // ascending; in reverse, descending
  ReadReply entries;

  ZLOG_FIELDS(v) {
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

struct TagsCheckReply : EndReply {
  uint64_t tags = 0;               // entries of tags in sound chunks
  std::vector<SpanMessage> wrong;  // positions that the index does not cover correctly

  ZLOG_FIELDS(v) {
    EndReply::each(v);
    v("tags", tags);
    v("wrong", wrong, wire::at_most(limits::list_page_max));
  }
};

// The decoded reply of tags_list: the entries that have tags.
struct TagsListReply : EndReply {
  uint32_t count = 0;                // entries
  wire::Column<uint64_t> positions;  // ascending
  Tags tags;                         // names may repeat

  ZLOG_FIELDS(v) {
    EndReply::each(v);
    v("count", count, wire::at_most(limits::entries_max));
    v("positions", positions, wire::number_of(count));
    tags.each(v, count, 1, 2 * limits::tag_names_bytes_max);
  }
  bool valid() const { return tags.valid(count); }
};

struct TagsListReplyBuilder : EndReply {
  using Message = TagsListReply;

  std::string positions;
  uint32_t count = 0;
  TagsBuilder tags;

  void encode(std::string* out) const {
    wire::encode(TagsListReply{{end}, count, {positions.data(), count}, tags.tags()}, out);
  }
};

struct CompactRequest : RangeRequest {
  Runs runs;  // the positions to trim

  ZLOG_FIELDS(v) {
    RangeRequest::each(v);
    v("runs", runs);
  }
};

struct CompactReply : EndReply {
  uint32_t trimmed = 0;  // entries

  ZLOG_FIELDS(v) {
    EndReply::each(v);
    v("trimmed", trimmed);
  }
};

// Builds the frames of a select's reply. The data follows them.
struct SelectReplyBuilder {
  using Message = SelectReply;

  SelectReply reply;  // without count and positions
  std::vector<uint64_t> positions;
  ReadReplyBuilder entries;

  void encode(std::string* out) const {
    SelectReply complete = reply;
    std::string column;
    for (const uint64_t position : positions) wire::append(&column, position);
    complete.count = static_cast<uint32_t>(positions.size());
    complete.positions = {column.data(), complete.count};
    wire::encode(complete, out);
    if (positions.empty()) return;
    std::string behind;
    entries.encode(&behind);
    out->append(behind);
  }
};

}  // namespace zlog
