#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/wire/wire.h"

namespace zlog {

// What a stored record says about its positions. The values are on disk.
enum class RecordKind : uint8_t {
  kInline = 1,  // entries of one write, their data behind the index
  kStream = 2,  // entries of one write, their data in the object's bytestream
  kFill = 3,    // filled
  kTrim = 4,    // trimmed without ever holding an entry that is still known
  kLost = 5,    // held something once and is damaged
};

// One record as read back, docs/formats/record.md. The positions are those of its key. It points
// into the stored value. Damaged bytes decode as kLost: what was there is not known, but something
// was, so nothing else may ever be written there.
struct Record {
  RecordKind kind = RecordKind::kLost;
  uint64_t timestamp = 0;   // µs since 1970-01-01 UTC; entries and fill
  std::string_view writer;  // entries and fill; else empty
  FillReason reason = FillReason::kUnknown;  // fill
  uint64_t number = 0;      // entries: base of `numbers`
  uint64_t offset = 0;      // stream: where the data begins in the bytestream
  wire::Column<uint8_t> states;    // entries: kWritten or kTrimmed
  wire::Column<uint32_t> ends;     // entries: the end of each one's data in the batch's
  wire::Column<uint32_t> crcs;     // entries: entry_crc of each
  wire::Column<uint32_t> numbers;  // entries: the append's number less the base
  std::string_view data;           // inline

  bool holds_entries() const {
    return kind == RecordKind::kInline || kind == RecordKind::kStream;
  }
  uint32_t begin_of(uint32_t i) const { return i == 0 ? 0 : ends[i - 1]; }
  uint32_t bytes_of(uint32_t i) const { return ends[i] - begin_of(i); }
  bool written(uint32_t i) const {
    return states[i] == static_cast<uint8_t>(EntryState::kWritten);
  }
  uint32_t data_bytes() const { return ends[ends.size() - 1]; }

  // The state of its i-th position.
  EntryState state_of(uint32_t i) const;

  // `length` is the number of positions in its key.
  static Record decode(std::string_view key, std::string_view value, uint64_t length);
};

// One entry of a record to be stored.
struct RecordEntry {
  EntryState state = EntryState::kWritten;  // or kTrimmed
  uint32_t bytes = 0;   // of data
  uint32_t crc = 0;     // entry_crc
  uint32_t number = 0;  // less the record's base
};

// What is common to the entries of one record.
struct RecordOrigin {
  uint64_t timestamp = 0;
  std::string_view writer;
  uint64_t number = 0;  // base
};

std::string encode_inline(std::string_view key, const RecordOrigin& origin,
                          const std::vector<RecordEntry>& entries, std::string_view data);
std::string encode_stream(std::string_view key, const RecordOrigin& origin,
                          const std::vector<RecordEntry>& entries, uint64_t offset);

// Records without entries. A fill has no number: the origin's is not used.
std::string encode_fill(std::string_view key, const RecordOrigin& origin, FillReason reason);
std::string encode_mark(std::string_view key, RecordKind kind);  // kTrim or kLost

}  // namespace zlog
