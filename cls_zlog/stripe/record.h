#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/wire/frame.h"
#include "cls_zlog/wire/tags.h"

namespace zlog {

constexpr auto kCompressionLast = static_cast<uint8_t>(Compression::kLz4);

// What a stored record says about its positions. The values are on disk, but for kUnreadable.
enum class RecordKind : uint8_t {
  kUnreadable = 0,   // intact, and of a later version
  kInline = 1,       // entries of one write, their data behind the index
  kStream = 2,       // entries of one write, their data in the object's bytestream
  kFill = 3,         // filled
  kTrim = 4,         // trimmed without ever holding an entry that is still known
  kLost = 5,         // held something once and is damaged
  kBlock = 6,        // as kInline, the data compressed; since version 2
  kBlockStream = 7,  // as kStream, the data compressed; since version 2
  kSparse = 8,       // entries that compaction has left, of any writes; since version 4
};

// Where entries or a fill are from.
struct RecordOrigin {
  uint64_t timestamp = 0;   // µs since 1970-01-01 UTC
  std::string_view writer;  // writer_bytes
  uint64_t number = 0;      // entries: base of their numbers
};

// A block of compressed data. The record's entries are all that were stored of it, or some in a row.
struct Block {
  Compression compression = Compression::kNone;
  uint32_t plain_bytes = 0;   // of the whole block
  uint32_t skip = 0;          // plain bytes in front of the first entry's
  uint32_t stored_bytes = 0;  // compressed
  uint32_t crc = 0;           // CRC-32C of these
};

// The entries of a sparse record, ascending; all of its other positions are trimmed. Each has an origin
// and names of its own.
struct SparseEntries {
  uint32_t count = 0;
  wire::Column<uint32_t> places;  // which of the record's positions each is, counted from 0
  wire::Column<uint64_t> timestamps;
  std::string_view writers;  // writer_bytes of each
  wire::Column<uint64_t> numbers;
  wire::Column<uint32_t> ends;
  wire::Column<uint32_t> crcs;
  std::string_view tag_names;  // entry by entry: of each name a u8 length, and as many bytes
  wire::Column<uint8_t> tag_counts;

  template <typename V>
  void each(V& v) {
    v("entries", count, wire::between(1, limits::entries_max));
    v("places", places, wire::number_of(count));
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

  // Which entry is the first one whose place is not below this one; `count`: none is.
  uint32_t at_or_after(uint32_t place) const;

  // Where the names of each entry begin, and one past those of the last.
  std::vector<uint32_t> name_begins() const;
};

// One record as read back, docs/formats/record.md. The positions are those of its key. It points
// into the stored value. Damaged bytes decode as kLost: what was there is not known, but something
// was, so nothing else may ever be written there. What a later version stored is kUnreadable: it is
// not to be changed in any way.
struct Record {
  RecordKind kind = RecordKind::kLost;
  RecordOrigin origin;                       // entries and fill; else empty
  FillReason reason = FillReason::kUnknown;  // fill
  Block block;                               // compressed entries
  uint64_t offset = 0;                       // stream: where the data begins in the bytestream
  wire::Column<uint8_t> states;              // entries: kWritten or kTrimmed
  wire::Column<uint32_t> ends;               // entries: the end of each one's data in the batch's
  wire::Column<uint32_t> crcs;               // entries: entry_crc of each
  wire::Column<uint32_t> numbers;            // entries: the append's number less the base
  Tags tags;                                 // entries; since version 3
  bool tagged = true;                        // whether its value has fields for tags, or may
  SparseEntries left;                        // sparse
  std::string_view data;                     // inline, sparse; of a block, unless all is trimmed
  uint32_t count = 0;                        // positions
  wire::Further further;

  template <typename V>
  void each(V& v) {
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

  // Not of the fields, since they differ by kind. A kind that a version brings in has that
  // version's number for its compat.
  static constexpr uint8_t kTagsVersion = 3;
  static constexpr uint8_t kSparseVersion = 4;
  static constexpr uint8_t kVersion = 4;
  wire::Versions versions() const {
    if (kind == RecordKind::kUnreadable) return {kVersion, 1};  // as yet
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

  // What its data takes in the bytestream, or beside the index.
  uint32_t stored_bytes() const {
    return compressed() ? block.stored_bytes : ends[ends.size() - 1];
  }

  // The state of its i-th position; it is not sparse.
  EntryState state_of(uint32_t i) const;

  // `length` is the number of positions in its key.
  static Record decode(std::string_view key, std::string_view value, uint64_t length);
};

// One entry of a record to be stored.
struct RecordEntry {
  EntryState state = EntryState::kWritten;  // or kTrimmed
  uint32_t bytes = 0;                       // of data
  uint32_t crc = 0;                         // entry_crc
  uint32_t number = 0;                      // less the record's base
};

// The value to be stored of `record` (its kind, and for a fill and for entries the origin, the
// reason, the block, the offset, the tags; the columns are those of `entries`).
std::string encode_record(std::string_view key, const Record& record,
                          const std::vector<RecordEntry>& entries = {}, std::string_view data = {});

}  // namespace zlog
