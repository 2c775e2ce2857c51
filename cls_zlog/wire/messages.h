#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/wire/runs.h"
#include "cls_zlog/wire/wire.h"

// Requests and replies of the methods on a stripe object, for both sides. docs/formats/wire.md is
// their grammar. encode() gives the bytes; decode() answers 0, or -EINVAL for bytes that are not
// exactly such a message. A decoded message may hold views into the bytes, which must outlive it.
namespace zlog {

// Replies that are one number.
std::string encode_epoch_reply(uint64_t epoch);        // STALE_EPOCH, INVALID_EPOCH
int decode_epoch_reply(std::string_view bytes, uint64_t* epoch);
std::string encode_position_reply(uint64_t position);  // READ_ONLY: the first position taken
int decode_position_reply(std::string_view bytes, uint64_t* position);
std::string encode_more_reply(bool more);              // trim_to: call again
int decode_more_reply(std::string_view bytes, bool* more);

// The highest position written, filled or trimmed in an object, if any: max_position.
struct Highest {
  bool has = false;
  uint64_t position = 0;  // 0 when there is none

  std::string encode() const;
  static int decode(std::string_view bytes, Highest* out);
};

// How much an object holds, for whoever decides when its stripe is full: write.
struct Fullness {
  uint32_t records = 0;  // stored records, each of them an omap key
  uint64_t bytes = 0;    // the bytestream's length, or the data of live entries if that is more

  std::string encode() const;
  static int decode(std::string_view bytes, Fullness* out);
};

// seal.
struct SealReply {
  Highest highest;
  Fullness fullness;

  std::string encode() const;
  static int decode(std::string_view bytes, SealReply* out);
};

// max_position, stat, remove; also head_remove.
struct EpochRequest {
  uint64_t epoch = 0;

  std::string encode() const;
  static int decode(std::string_view bytes, EpochRequest* out);
};

struct SealRequest {
  uint64_t epoch = 0;    // at least 1
  uint32_t stride = 1;   // positions between two of the object's: the stripe's width
  uint32_t residue = 0;  // below stride; p % stride of every position p in the object
  bool create = false;   // make a missing object; only when its stripe is being made

  std::string encode() const;
  static int decode(std::string_view bytes, SealRequest* out);
};

// A decoded write; write_encoder.h encodes one. The columns hold one value per position, in position
// order.
struct WriteRequest {
  uint64_t epoch = 0;
  uint64_t timestamp = 0;        // µs since 1970-01-01 UTC, the writer's clock
  std::string_view writer;       // writer_bytes
  uint64_t number = 0;           // base of `numbers`
  Runs runs;
  wire::Column<uint32_t> ends;   // the end of each entry in `data`; ascending
  wire::Column<uint32_t> crcs;   // entry_crc of each; not checked by decode
  wire::Column<uint32_t> numbers;  // number of each append, less the base
  std::string_view data;

  uint32_t begin_of(uint32_t i) const { return i == 0 ? 0 : ends[i - 1]; }
  std::string_view data_of(uint32_t i) const {
    return data.substr(begin_of(i), ends[i] - begin_of(i));
  }
  uint64_t number_of(uint32_t i) const { return number + numbers[i]; }
  static int decode(std::string_view bytes, WriteRequest* out);
};

struct ReadRequest {
  uint64_t epoch = 0;
  bool with_ids = false;   // also the writer, the append's number and the fill reason of each
  uint32_t bytes_max = 0;  // bytes of data to stop before; the first entry comes whatever its size
  Runs runs;

  std::string encode() const;
  static int decode(std::string_view bytes, ReadRequest* out);
};

// What is known of one position in a read's reply, apart from its data.
struct ReadEntry {
  EntryState state = EntryState::kUnwritten;
  uint64_t timestamp = 0;   // µs since 1970-01-01 UTC; 0 where nothing is known
  uint32_t crc = 0;         // entry_crc of a written entry
  std::string_view writer;  // with ids: writer_bytes, or empty where nothing is known
  uint64_t number = 0;      // with ids
  FillReason reason = FillReason::kUnknown;  // with ids
};

// Written entries in a row: the `count` ones from the `first` on in columns of a record.
struct ReadEntries {
  uint64_t timestamp = 0;
  std::string_view writer;
  uint64_t number = 0;             // base of `numbers`
  wire::Column<uint32_t> ends;     // of each one's data, in that of the record
  wire::Column<uint32_t> crcs;
  wire::Column<uint32_t> numbers;
  uint32_t first = 0;
  uint32_t count = 0;

  uint32_t begin_of(uint32_t i) const { return i == 0 ? 0 : ends[i - 1]; }
};

// Builds a read's reply, position by position, all but the data, which goes behind it.
class ReadReplyBuilder {
 public:
  // `count_max`: how many positions it may be about.
  ReadReplyBuilder(const Highest& highest, bool with_ids, uint32_t count_max);

  void add(const ReadEntry& entry);  // without data
  void add(const ReadEntries& entries);
  uint64_t data_bytes() const { return data_bytes_; }
  uint32_t count() const { return count_; }
  std::string encode() const;

 private:
  void add_ids(std::string_view writer, uint64_t number, FillReason reason);

  const Highest highest_;
  const bool with_ids_;
  uint32_t count_ = 0;
  uint32_t data_bytes_ = 0;
  std::string states_, timestamps_, ends_, crcs_, writers_, numbers_, reasons_;
};

// A decoded read reply: about the first `count` of the positions that were asked.
struct ReadReply {
  Highest highest;
  uint32_t count = 0;
  bool with_ids = false;
  wire::Column<uint8_t> states;  // EntryState
  wire::Column<uint64_t> timestamps;
  wire::Column<uint32_t> ends;
  wire::Column<uint32_t> crcs;
  std::string_view writers;      // writer_bytes each
  wire::Column<uint64_t> numbers;
  wire::Column<uint8_t> reasons;  // FillReason
  std::string_view data;

  std::string_view data_of(uint32_t i) const;
  std::string_view writer_of(uint32_t i) const;  // writer_bytes; empty without ids

  // The state of entry `i`, given the position that it was asked for: kLost also when its data
  // does not have the CRC that it was written with.
  EntryState state_of(uint32_t i, uint64_t position) const;

  // The states of all of them, given that positions from `first` on were asked for, one every
  // `stride`. `out` has room for `count`.
  void states_of(uint64_t first, uint32_t stride, uint8_t* out) const;

  // `asked` is the number of positions in the request.
  static int decode(std::string_view bytes, bool with_ids, uint32_t asked, ReadReply* out);
};

struct FillRequest {
  uint64_t epoch = 0;
  uint64_t timestamp = 0;   // µs since 1970-01-01 UTC
  std::string_view writer;  // writer_bytes: who filled
  FillReason reason = FillReason::kUnknown;
  Runs runs;

  std::string encode() const;
  static int decode(std::string_view bytes, FillRequest* out);
};

struct TrimRequest {
  uint64_t epoch = 0;
  Runs runs;

  std::string encode() const;
  static int decode(std::string_view bytes, TrimRequest* out);
};

struct TrimToRequest {
  uint64_t epoch = 0;
  uint64_t position = 0;     // everything below it goes
  uint32_t records_max = 0;  // records to free in this call, 1 to trim_records_max

  std::string encode() const;
  static int decode(std::string_view bytes, TrimToRequest* out);
};

struct StatReply {
  uint64_t object_epoch = 0;
  Highest highest;
  uint64_t trim_point = 0;
  uint64_t entries = 0;       // written and not trimmed
  uint64_t bytes = 0;         // data of those
  uint64_t records = 0;       // stored records
  uint64_t stream_bytes = 0;  // length of the object's bytestream, holes included
  uint32_t stride = 1;        // the geometry that the object was made with
  uint32_t residue = 0;

  std::string encode() const;
  static int decode(std::string_view bytes, StatReply* out);
};

}  // namespace zlog
