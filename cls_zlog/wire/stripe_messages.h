#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/wire/blocks.h"
#include "cls_zlog/wire/fields.h"
#include "cls_zlog/wire/tags.h"

// Requests and replies of the methods on stripe objects, and messages that several kinds of objects
// share. fields.h defines the encoding, and docs/formats/wire.md explains the meaning. A decoded
// request contains views of the encoded bytes.
namespace zlog {

using wire::any;
using wire::at_least;
using wire::at_most;
using wire::between;

struct Empty {
  ZLOG_FIELDS() {}
};

// The reply of a refusal. codes.h explains the number.
struct RefusalReply {
  uint64_t number = 0;

  ZLOG_FIELDS(v) { v("number", number); }
};

// The reply of trim_to, trim_point_raise and delivery_done, and the first field of listings.
struct MoreReply {
  bool more = false;  // something is left: call again

  ZLOG_FIELDS(v) { v("more", more); }
};

// The request of stat, remove, freeze and head_remove.
struct EpochRequest {
  uint64_t epoch = 0;

  ZLOG_FIELDS(v) { v("epoch", epoch); }
};

// Consecutive positions of one object.
struct SpanMessage : Span {
  ZLOG_FIELDS(v) {
    v("first", first, wire::position());
    v("last", last, wire::position());
  }
};

// The request of count, tags_check, tags_rebuild and tags_list.
struct RangeRequest {
  uint64_t epoch = 0;
  uint64_t start = 0;
  uint64_t end = 0;  // one past the last position

  ZLOG_FIELDS(v) {
    v("epoch", epoch);
    v("start", start, wire::position_or_end());
    v("end", end, wire::position_or_end());
  }
};

// The reply of tags_rebuild.
struct EndReply {
  uint64_t end = 0;  // the requested end, or where this call stopped

  ZLOG_FIELDS(v) { v("end", end, wire::position_or_end()); }
};

// The request of retention_read. Each request to a head object begins with the log's id, so that a
// client of a removed log cannot change a new log with the same name.
struct LogRequest {
  uint64_t log_id = 0;

  ZLOG_FIELDS(v) { v("log_id", log_id); }
};

// The request of cursor_list and delivery_list.
struct NamesRequest : LogRequest {
  std::string_view after;  // list the names above it; empty: from the first
  uint32_t count_max = 0;  // in the reply

  ZLOG_FIELDS(v) {
    LogRequest::each(v);
    v("after", after, wire::name_or_none());
    v("count_max", count_max, between(1, limits::list_page_max));
  }
};

struct SealRequest {
  uint64_t epoch = 0;
  uint32_t stride = 1;            // the stripe's width
  uint32_t residue = 0;           // the object's index, below stride
  bool create = false;            // make a missing object; only for a new stripe
  std::optional<uint64_t> start;  // the stripe's first position
  uint32_t stripe_unit = 1;       // consecutive positions in one object: a power of two

  ZLOG_FIELDS(v) {
    v("epoch", epoch, between(1, limits::epoch_max));
    v("stride", stride, between(1, limits::width_max));
    v("residue", residue);
    v("create", create);
    v("start", start, wire::position().since(2));
    v("stripe_unit", stripe_unit, wire::unit(3));
  }
  bool valid() const { return residue < stride && is_unit(stripe_unit); }
};

// The reply of write: how much an object holds. Clients decide by it whether a stripe is full.
struct Fullness {
  uint32_t records = 0;  // each is an omap key
  uint64_t bytes = 0;    // the larger of the bytestream's length and the data of live entries

  ZLOG_FIELDS(v) {
    v("records", records);
    v("bytes", bytes);
  }
};

// The request of max_position.
struct HighestRequest {
  uint64_t epoch = 0;
  uint64_t start = 0;  // where the search for `unwritten` begins

  ZLOG_FIELDS(v) {
    v("epoch", epoch);
    v("start", start, wire::position().since(2));
  }
};

struct HighestReply {
  std::optional<uint64_t> highest;  // the highest position written, filled or trimmed
  // The object's first position at or above `start` that may be unwritten.
  std::optional<uint64_t> unwritten;

  ZLOG_FIELDS(v) {
    v("highest", highest, wire::position());
    v("unwritten", unwritten, wire::position().since(2));
  }
};

struct SealReply : Fullness {
  std::optional<uint64_t> highest;  // as in HighestReply
  std::optional<uint64_t> start;    // where the object's bounded range begins
  bool made = true;                 // the object is new

  ZLOG_FIELDS(v) {
    v("highest", highest, wire::position());
    Fullness::each(v);
    v("start", start, wire::position().since(2));
    v("made", made, wire::any().since(3));
  }
};

// The entries of a decoded write or append, which client/write_encoder.h encodes. Each column has
// one value per entry. The data follows the frame, plain or in blocks.
struct SentEntries {
  uint64_t timestamp = 0;          // µs since 1970-01-01 UTC, the writer's clock
  std::string_view writer;         // writer_bytes
  uint64_t number = 0;             // base of `numbers`
  wire::Column<uint32_t> ends;     // end of each entry in the plain data; ascending
  wire::Column<uint32_t> crcs;     // of each; decode does not check them
  wire::Column<uint32_t> numbers;  // each append's number less the base
  Compression compression = Compression::kNone;
  std::vector<WriteBlock> blocks;  // empty: the data is not compressed
  Tags tags;
  std::string_view data;

  bool tags_valid() const {
    return tags.ids.size() <= limits::tag_ids_max && tags.valid(ends.size());
  }

  // Takes the bytes that follow the frame: up to padding_bytes_max zeros, and then the data.
  // Returns false if they are malformed.
  bool take_data(std::string_view behind);

  bool compressed() const { return !blocks.empty(); }
  uint32_t begin_of(uint32_t i) const { return i == 0 ? 0 : ends[i - 1]; }
  uint32_t bytes_of(uint32_t i) const { return ends[i] - begin_of(i); }
  std::string_view data_of(uint32_t i) const {  // if the data is not compressed
    return data.substr(begin_of(i), bytes_of(i));
  }
  uint64_t number_of(uint32_t i) const { return number + numbers[i]; }
};

struct WriteRequest : SentEntries {
  uint64_t epoch = 0;
  Runs runs;  // the crcs are the entry_crc of each

  ZLOG_FIELDS(v) {
    v("epoch", epoch);
    v("timestamp", timestamp);
    v("writer", writer, wire::raw(limits::writer_bytes));
    v("number", number, at_most(UINT64_MAX - UINT32_MAX));
    v("runs", runs);
    v("ends", ends, wire::number_of(runs.count()));
    v("crcs", crcs, wire::number_of(runs.count()));
    v("numbers", numbers, wire::number_of(runs.count()));
    v("compression", compression, at_most(Compression::kLz4).since(2));
    v("blocks", blocks, at_most(limits::entries_max).since(2));
    tags.each(v, runs.count(), 3);
  }
  bool valid() const { return tags_valid(); }
  uint8_t needs() const { return tags.any() ? 3 : blocks.empty() ? 1 : 2; }
};

struct ReadRequest {
  uint64_t epoch = 0;
  bool with_ids = false;   // return writers, append numbers and fill reasons
  uint32_t bytes_max = 0;  // bytes of data; the first entry is returned whatever its size
  Runs runs;
  bool blocks = false;        // the client reads blocks; else their entries are unreadable
  bool tags = false;          // return tags
  bool without_data = false;  // return no data; bytes_max then has no effect

  ZLOG_FIELDS(v) {
    v("epoch", epoch);
    v("with_ids", with_ids);
    v("bytes_max", bytes_max);
    v("runs", runs);
    v("blocks", blocks, wire::any().since(2));
    v("tags", tags, wire::any().since(3));
    v("without_data", without_data, wire::any().since(4));
  }
};

struct VerifyRequest {
  uint64_t epoch = 0;
  uint32_t bytes_max = 0;  // bytes of data; the first entry is checked whatever its size
  Runs runs;
  bool keys_only = false;  // do not check data in the bytestream

  ZLOG_FIELDS(v) {
    v("epoch", epoch);
    v("bytes_max", bytes_max);
    v("runs", runs);
    v("keys_only", keys_only, wire::any().since(2));
  }
};

struct FillRequest {
  uint64_t epoch = 0;
  uint64_t timestamp = 0;   // µs since 1970-01-01 UTC
  std::string_view writer;  // writer_bytes: the filler's id
  FillReason reason = FillReason::kUnknown;
  Runs runs;

  ZLOG_FIELDS(v) {
    v("epoch", epoch);
    v("timestamp", timestamp);
    v("writer", writer, wire::raw(limits::writer_bytes));
    v("reason", reason, at_most(FillReason::kWriterGaveUp));
    v("runs", runs);
  }
};

struct TrimRequest {
  uint64_t epoch = 0;
  Runs runs;

  ZLOG_FIELDS(v) {
    v("epoch", epoch);
    v("runs", runs);
  }
};

struct TrimToRequest {
  uint64_t epoch = 0;
  uint64_t position = 0;     // trim everything below it
  uint32_t records_max = 0;  // records to free in this call

  ZLOG_FIELDS(v) {
    v("epoch", epoch);
    v("position", position, wire::position_or_end());
    v("records_max", records_max, between(1, limits::trim_records_max));
  }
};

struct StatReply {
  uint64_t object_epoch = 0;
  std::optional<uint64_t> highest;
  uint64_t trim_point = 0;
  uint64_t entries = 0;       // written and not trimmed
  uint64_t bytes = 0;         // their data
  uint64_t records = 0;       // stored records
  uint64_t stream_bytes = 0;  // length of the object's bytestream, with holes
  uint32_t stride = 1;        // as in SealRequest
  uint32_t residue = 0;
  uint32_t stripe_unit = 1;
  std::optional<uint64_t> stored_bytes;  // size of the stored data
  bool frozen = false;

  ZLOG_FIELDS(v) {
    v("object_epoch", object_epoch);
    v("highest", highest, wire::position());
    v("trim_point", trim_point);
    v("entries", entries);
    v("bytes", bytes);
    v("records", records);
    v("stream_bytes", stream_bytes);
    v("stride", stride);
    v("residue", residue);
    v("stripe_unit", stripe_unit, wire::any().since(2));
    v("stored_bytes", stored_bytes, wire::any().since(3));
    v("frozen", frozen, wire::any().since(4));
  }
};

// What the object has at positions [start, end). Positions below its trim point are not counted.
struct CountReply : EndReply {
  uint64_t entries = 0;               // written, and neither trimmed nor damaged
  uint64_t bytes = 0;                 // their data
  std::optional<uint64_t> hole;       // the first unwritten position
  std::optional<uint64_t> last;       // the last position with an entry
  std::optional<uint64_t> oldest;     // the lowest timestamp of an entry
  std::optional<uint64_t> newest;     // the highest one
  bool lost = false;                  // some records are damaged or missing
  std::optional<uint64_t> oldest_at;  // the first position with that timestamp
  std::optional<uint64_t> newest_at;

  ZLOG_FIELDS(v) {
    EndReply::each(v);
    v("entries", entries);
    v("bytes", bytes);
    v("hole", hole, wire::position());
    v("last", last, wire::position());
    v("oldest", oldest);
    v("newest", newest);
    v("lost", lost, wire::any().since(2));
    v("oldest_at", oldest_at, wire::position().since(2));
    v("newest_at", newest_at, wire::position().since(2));
  }
};

using WriterId = std::array<char, limits::writer_bytes>;

// A run of consecutive positions in the request of verify.
struct VerifiedRow {
  uint32_t length = 0;                        // positions
  EntryState state = EntryState::kUnwritten;  // kLost also if the data fails its CRC
  WriterId writer = {};                       // zeros if no append is known
  uint64_t number = 0;                        // of the first position's append
  uint32_t step = 0;                          // from one position's number to the next
  uint64_t bytes = 0;                         // data of all written entries

  ZLOG_FIELDS(v) {
    v("length", length, between(1, limits::entries_max));
    v("state", state, at_most(EntryState::kUnreadable));
    v("writer", writer);
    v("number", number);
    v("step", step);
    v("bytes", bytes);
  }
  bool valid() const { return uint64_t{length - 1} * step <= UINT64_MAX - number; }

  // Returns whether the row has the ids of appends. Its entries may be written or trimmed.
  bool has_ids() const {
    return (state == EntryState::kWritten || state == EntryState::kTrimmed) && writer != WriterId();
  }
};

// Covers the first `count` of the requested positions.
struct VerifyReply {
  std::optional<uint64_t> highest;
  uint32_t count = 0;
  std::vector<VerifiedRow> rows;

  ZLOG_FIELDS(v) {
    v("highest", highest, wire::position());
    v("count", count, between(1, limits::entries_max));
    v("rows", rows, at_most(limits::entries_max));
  }
  bool valid() const;
};

}  // namespace zlog
