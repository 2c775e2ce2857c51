#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/wire/blocks.h"
#include "cls_zlog/wire/fields.h"
#include "cls_zlog/wire/tags.h"

// The reply of read and select. It is a frame of columns, followed by the entries' data, which is
// plain or in blocks. Encoding and decoding copy as little as possible.
namespace zlog {

// A decoded reply. It covers the first `count` of the requested positions.
struct ReadReply {
  std::optional<uint64_t> highest;  // as in HighestReply
  uint32_t count = 0;
  bool with_ids = false;
  wire::Column<uint8_t> states;       // EntryState
  wire::Column<uint64_t> timestamps;  // µs since 1970-01-01 UTC; 0: not known
  wire::Column<uint32_t> ends;        // in the plain data
  wire::Column<uint32_t> crcs;        // entry_crc of written entries
  std::string_view writers;           // with ids: writer_bytes each
  wire::Column<uint64_t> numbers;     // with ids
  wire::Column<uint8_t> reasons;      // with ids: FillReason
  std::vector<ReadBlock> blocks;
  Tags tags;
  std::string_view data;  // plain if there are no blocks (client/blocks.h)

  ZLOG_FIELDS(v) {
    v("highest", highest, wire::position());
    v("count", count, wire::between(1, limits::entries_max));
    v("with_ids", with_ids);
    v("states", states, wire::number_of(count));
    v("timestamps", timestamps, wire::number_of(count));
    v("ends", ends, wire::number_of(count));
    v("crcs", crcs, wire::number_of(count));
    const uint32_t ids = with_ids ? count : 0;
    v("writers", writers, wire::raw_number_of(uint64_t{ids} * limits::writer_bytes));
    v("numbers", numbers, wire::number_of(ids));
    v("reasons", reasons, wire::number_of(ids));
    v("blocks", blocks, wire::at_most(limits::entries_max).since(2));
    tags.each(v, count, 3, 2 * limits::tag_names_bytes_max);
  }
  uint8_t needs() const { return blocks.empty() ? 1 : 2; }
  bool valid() const { return tags.valid(count); }
  bool take_data(std::string_view behind);

  uint32_t begin_of(uint32_t i) const { return i == 0 ? 0 : ends[i - 1]; }
  std::string_view data_of(uint32_t i) const;
  std::string_view writer_of(uint32_t i) const;  // writer_bytes; empty without ids

  // Returns the reason of a fill; kUnknown also for reasons of later versions.
  FillReason reason_of(uint32_t i) const;

  // Returns the state of entry `i` as the reply has it; kUnreadable for states of later versions.
  EntryState stored_state_of(uint32_t i) const;

  // Returns the state of entry `i`, or kLost if its data fails the CRC. `position` must be the
  // entry's position, because the CRC covers it.
  EntryState state_of(uint32_t i, uint64_t position) const;
};

// A position without its data.
struct ReadEntry {
  EntryState state = EntryState::kUnwritten;
  uint64_t timestamp = 0;
  uint32_t crc = 0;
  std::string_view writer;  // writer_bytes, or empty if not known
  uint64_t number = 0;
  FillReason reason = FillReason::kUnknown;
};

// `count` written entries of a record, beginning with the entry `first` in its columns.
struct ReadEntries {
  uint64_t timestamp = 0;
  std::string_view writer;
  uint64_t number = 0;          // base of `numbers`
  wire::Column<uint32_t> ends;  // of the data; empty: without data
  wire::Column<uint32_t> crcs;
  wire::Column<uint32_t> numbers;
  uint32_t first = 0;
  uint32_t count = 0;
  const TagsReader* tags = nullptr;  // of the record; nullptr: no tags

  uint32_t end_of(uint32_t i) const { return ends.size() == 0 ? 0 : ends[i]; }
  uint32_t begin_of(uint32_t i) const { return i == 0 ? 0 : end_of(i - 1); }
};

// Builds the frame of a read's reply. The data follows it.
class ReadReplyBuilder {
 public:
  using Message = ReadReply;

  // Reserves memory for `count_max` positions.
  explicit ReadReplyBuilder(std::optional<uint64_t> highest = {}, bool with_ids = false,
                            uint32_t count_max = 0, bool with_tags = false);

  // Adds a position. `bytes` is the size of its data, `tag` its only tag.
  void add(const ReadEntry& entry, uint32_t bytes = 0, std::string_view tag = {});
  void add(const ReadEntries& entries);
  void add_block(ReadBlock block);  // of the entries that are added next
  uint64_t data_bytes() const { return data_bytes_; }
  uint32_t count() const { return count_; }
  bool with_tags() const { return with_tags_; }
  bool tags_full() const { return tags_.full(); }
  void encode(std::string* out) const;

 private:
  void add_ids(std::string_view writer, uint64_t number, FillReason reason);

  std::optional<uint64_t> highest_;
  bool with_ids_;
  bool with_tags_;
  uint32_t count_ = 0;
  uint32_t data_bytes_ = 0;
  std::string states_, timestamps_, ends_, crcs_, writers_, numbers_, reasons_;
  std::vector<ReadBlock> blocks_;
  TagsBuilder tags_;
};

}  // namespace zlog
