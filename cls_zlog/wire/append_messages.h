#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/stripe_messages.h"

// The request and the reply of append.
namespace zlog {

// Tags, all of which an entry must have to conflict with an append.
struct TagSet {
  std::string names;  // as in Tags

  static constexpr uint32_t kBytesMax = limits::entry_tags_max * (1 + limits::tag_bytes_max);

  ZLOG_FIELDS(v) { v("names", names, wire::between(1, kBytesMax)); }
  bool valid() const {
    uint32_t count = 0;
    const auto counted = [&](std::string_view name) {
      return valid_tag(name) && ++count <= limits::entry_tags_max;
    };
    return each_name(names, counted);
  }
};

// Entries of an append that are stored together or not at all, and the condition for that.
struct AppendPart {
  uint32_t entries = 1;            // they follow those of the previous part
  std::optional<uint64_t> expect;  // the position that its first entry must get
  // No entry at a position from `start` on may have all tags of one of these sets. With start 0, the
  // condition is about the entries that exist; otherwise, trimmed ones may have conflicted too.
  uint64_t start = 0;
  std::vector<TagSet> unless;

  ZLOG_FIELDS(v) {
    v("entries", entries, between(1, limits::entries_max));
    v("expect", expect, wire::position());
    v("start", start, wire::position_or_end());
    v("unless", unless, at_most(limits::unless_sets_max));
  }
  bool conditional() const { return expect || !unless.empty(); }
};

struct AppendRequest : SentEntries {
  uint64_t epoch = 0;
  uint64_t since = 0;             // no earlier copy of this request is stored below it
  std::vector<AppendPart> parts;  // the crcs are the CRC-32C of each entry's data alone

  ZLOG_FIELDS(v) {
    v("epoch", epoch);
    v("timestamp", timestamp);
    v("writer", writer, wire::raw(limits::writer_bytes));
    v("number", number, at_most(UINT64_MAX - UINT32_MAX));
    v("since", since, wire::position_or_end());
    v("parts", parts, between(1, limits::append_parts_max));
    v("ends", ends, wire::number_of(count()));
    v("crcs", crcs, wire::number_of(count()));
    v("numbers", numbers, wire::number_of(count()));
    v("compression", compression, at_most(Compression::kLz4));
    v("blocks", blocks, at_most(limits::entries_max));
    tags.each(v, count(), 1);
  }
  bool valid() const;

  // Returns the number of entries in all parts; not more than entries_max + 1.
  uint32_t count() const {
    uint64_t total = 0;
    for (const AppendPart& part : parts) total += part.entries;
    return static_cast<uint32_t>(std::min<uint64_t>(total, limits::entries_max + 1));
  }
};

struct AppendOutcome {
  PartState state = PartState::kAppended;
  uint64_t position = 0;

  ZLOG_FIELDS(v) {
    v("state", state, at_most(PartState::kSearched));
    v("position", position, wire::position_or_end());
  }
};

// A call either stores parts or reports about parts, because the reply to a change is limited to
// write_reply_bytes_max bytes.
struct AppendReply : Fullness {
  uint64_t tail = 0;    // one past the highest position in use
  uint64_t since = 0;   // for the next request with the other parts
  uint32_t stored = 0;  // this call stored so many parts, the first ones, right below the tail
  std::vector<AppendOutcome> outcomes;  // if it stored none: of each part

  ZLOG_FIELDS(v) {
    Fullness::each(v);
    v("tail", tail, wire::position_or_end());
    v("since", since, wire::position_or_end());
    v("stored", stored, at_most(limits::append_parts_max));
    v("outcomes", outcomes, at_most(limits::append_parts_max));
  }
};

}  // namespace zlog
