#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/tags.h"

namespace zlog {

constexpr auto kCompressionLast = static_cast<uint8_t>(Compression::kLz4);

// These values are stored, except kUnreadable.
enum class RecordKind : uint8_t {
  kUnreadable = 0,   // an intact record of a later version
  kInline = 1,       // entries of one write, their data after the fields
  kStream = 2,       // entries of one write, their data in the object's bytestream
  kFill = 3,         // filled
  kTrim = 4,         // trimmed positions without known entries
  kLost = 5,         // damaged
  kBlock = 6,        // kInline with compressed data; since version 2
  kBlockStream = 7,  // kStream with compressed data; since version 2
  kSparse = 8,       // entries of any writes, kept by a compaction; since version 4
};

// Who appended entries or filled positions, and when.
struct RecordOrigin {
  uint64_t timestamp = 0;   // µs since 1970-01-01 UTC
  std::string_view writer;  // writer_bytes
  uint64_t number = 0;      // base of the entries' numbers
};

// A block of compressed data. The record has all of its entries, or some consecutive ones.
struct Block {
  Compression compression = Compression::kNone;
  uint32_t plain_bytes = 0;   // of the whole block
  uint32_t skip = 0;          // plain bytes before the first entry's
  uint32_t stored_bytes = 0;  // compressed
  uint32_t crc = 0;           // CRC-32C of the compressed bytes
};

// The entries of a sparse record, in ascending order. Each entry has its own origin and tags. All
// other positions of the record are trimmed.
struct SparseEntries {
  uint32_t count = 0;
  wire::Column<uint32_t> indexes;  // index of each among the record's positions
  wire::Column<uint64_t> timestamps;
  std::string_view writers;  // writer_bytes of each
  wire::Column<uint64_t> numbers;
  wire::Column<uint32_t> ends;
  wire::Column<uint32_t> crcs;
  std::string_view tag_names;  // entry by entry, each name a u8 length and its bytes
  wire::Column<uint8_t> tag_counts;

  ZLOG_FIELDS(v) {
    v("entries", count, wire::between(1, limits::entries_max));
    v("indexes", indexes, wire::number_of(count));
    v("timestamps", timestamps, wire::number_of(count));
    v("writers", writers, wire::raw_number_of(uint64_t{count} * limits::writer_bytes));
    v("numbers", numbers, wire::number_of(count));
    v("ends", ends, wire::number_of(count));
    v("crcs", crcs, wire::number_of(count));
    v("tag_names", tag_names);
    v("tag_counts", tag_counts, wire::number_of(count));
  }
  bool valid(uint32_t positions) const;

  uint32_t begin_of(uint32_t i) const { return i == 0 ? 0 : ends[i - 1]; }
  uint32_t bytes_of(uint32_t i) const { return ends[i] - begin_of(i); }
  uint32_t data_bytes() const { return ends[count - 1]; }
  std::string_view writer_of(uint32_t i) const {
    return writers.substr(size_t{i} * limits::writer_bytes, limits::writer_bytes);
  }

  // Returns the first entry whose index is at least this one; `count` if there is none.
  uint32_t at_or_after(uint32_t index) const;

  // Returns the offset in tag_names at which each entry's names begin, followed by the offset at
  // which the last entry's names end.
  std::vector<uint32_t> name_begins() const;

  // Returns the tags of the i-th entry in the form of a record with one entry.
  Tags tags_of(uint32_t i, const std::vector<uint32_t>& name_begins) const;
};

// A decoded record (docs/formats/record.md), which points into the stored value. Its key contains
// its positions. A damaged value decodes as kLost, and its positions accept no other entry. A
// record of a later version decodes as kUnreadable and must not be changed.
struct Record {
  RecordKind kind = RecordKind::kLost;
  RecordOrigin origin;                       // of entries and fills
  FillReason reason = FillReason::kUnknown;  // of fills
  Block block;                               // if compressed
  uint64_t offset = 0;                       // if streamed: of the data in the bytestream
  wire::Column<uint8_t> states;              // of entries: kWritten or kTrimmed
  wire::Column<uint32_t> ends;               // of each entry's data
  wire::Column<uint32_t> crcs;               // entry_crc of each entry
  wire::Column<uint32_t> numbers;            // each append's number less the base
  Tags tags;                                 // of entries; since version 3
  bool tagged = true;                        // whether the value may have fields for tags
  SparseEntries left;                        // if sparse
  std::string_view data;                     // in the value; none if streamed or all trimmed
  uint32_t count = 0;                        // positions
  wire::Further further;

  ZLOG_FIELDS(v) {
    v("kind", kind, wire::between(1, static_cast<uint64_t>(RecordKind::kSparse)));
    if (kind == RecordKind::kTrim || kind == RecordKind::kLost) return;
    if (sparse()) return left.each(v);
    v("timestamp", origin.timestamp);
    v("writer", origin.writer, wire::raw(limits::writer_bytes));
    if (kind == RecordKind::kFill)
      return v("reason", reason, wire::at_most(FillReason::kWriterGaveUp));
    v("number", origin.number);
    if (compressed()) {
      v("compression", block.compression, wire::between(1, uint64_t{kCompressionLast}));
      v("plain_bytes", block.plain_bytes, wire::between(1, limits::request_bytes_max));
      v("skip", block.skip);
      v("stored_bytes", block.stored_bytes, wire::between(1, limits::request_bytes_max));
      v("block_crc", block.crc);
    }
    if (streamed()) v("offset", offset, wire::at_most(limits::stream_bytes_max));
    v("states", states, wire::number_of(count));
    v("ends", ends, wire::number_of(count));
    v("crcs", crcs, wire::number_of(count));
    v("numbers", numbers, wire::number_of(count));
    if (tagged) tags.each(v, count, kTagsVersion);
  }
  bool valid() const;

  // The kind determines which fields a record has, and therefore its version. A new kind needs a
  // new version, and only readers of that version or later can read it.
  static constexpr uint8_t kTagsVersion = 3;
  static constexpr uint8_t kSparseVersion = 4;
  static constexpr uint8_t kVersion = 4;
  wire::Versions versions() const {
    if (kind == RecordKind::kUnreadable) return {kVersion, 1};  // not decoded yet
    if (sparse()) return {kSparseVersion, kSparseVersion};
    const uint8_t compat = compressed() ? 2 : 1;
    return {tags.any() ? kTagsVersion : compat, compat};
  }

  bool compressed() const { return kind == RecordKind::kBlock || kind == RecordKind::kBlockStream; }
  bool streamed() const { return kind == RecordKind::kStream || kind == RecordKind::kBlockStream; }
  bool holds_entries() const { return kind == RecordKind::kInline || streamed() || compressed(); }
  bool sparse() const { return kind == RecordKind::kSparse; }
  bool unreadable() const { return kind == RecordKind::kUnreadable; }
  uint32_t begin_of(uint32_t i) const { return i == 0 ? 0 : ends[i - 1]; }
  uint32_t bytes_of(uint32_t i) const { return ends[i] - begin_of(i); }
  bool written(uint32_t i) const { return states[i] == static_cast<uint8_t>(EntryState::kWritten); }
  bool any_written() const;

  // Returns the size of the record's data, in the bytestream or in the value.
  uint32_t stored_bytes() const {
    return compressed() ? block.stored_bytes : ends[ends.size() - 1];
  }

  // Returns the state of the i-th position. The record must not be sparse.
  EntryState state_of(uint32_t i) const;

  // Decodes a value; `length` is the number of positions in its key.
  static Record decode(std::string_view key, std::string_view value, uint64_t length);
};

// An entry of a record that is to be stored.
struct RecordEntry {
  EntryState state = EntryState::kWritten;  // or kTrimmed
  uint32_t bytes = 0;                       // of data
  uint32_t crc = 0;                         // entry_crc
  uint32_t number = 0;                      // less the record's base
};

// Encodes the value of `record`, with columns made of `entries`; `data` follows the fields.
std::string encode_record(std::string_view key, const Record& record,
                          const std::vector<RecordEntry>& entries = {}, std::string_view data = {});

// Encodes a sparse record.
class SparseBuilder {
 public:
  struct Entry {
    uint32_t index = 0;
    uint64_t timestamp = 0;
    std::string_view writer;
    uint64_t number = 0;
    uint32_t crc = 0;
    std::string_view tag_names;
    uint8_t tag_count = 0;
    std::string_view data;

    // The size that the entry adds to the record's value.
    uint64_t bytes() const { return kBytes + tag_names.size() + data.size(); }
  };
  static constexpr uint64_t kBytes =
      3 * sizeof(uint32_t) + 2 * sizeof(uint64_t) + limits::writer_bytes + 1;

  void add(const Entry& entry);
  bool empty() const { return count_ == 0; }
  uint32_t count() const { return count_; }
  uint64_t bytes() const { return kBytes * count_ + tag_names_.size() + data_.size(); }
  std::string encode(std::string_view key) const;

 private:
  uint32_t count_ = 0;
  std::string indexes_, timestamps_, writers_, numbers_, ends_, crcs_, tag_names_, tag_counts_,
      data_;
};

// Calls use(entry) for each entry of a sparse record, ascending.
void each_entry(const Record& record, const std::function<void(const SparseBuilder::Entry&)>& use);

}  // namespace zlog
