#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/wire/blocks.h"
#include "cls_zlog/wire/fields.h"
#include "cls_zlog/wire/tags.h"

// Requests and replies of the methods on a stripe object, for both sides; fields.h says how they
// become bytes, docs/formats/wire.md what they mean. A decoded request may hold views into its
// bytes, which must outlive it.
namespace zlog {

using wire::any;
using wire::at_least;
using wire::at_most;
using wire::between;

// A request or reply that says nothing.
struct Empty {
  template <typename V>
  void each(V&) {}
};

// What comes with a refusal; codes.h says which number it is.
struct RefusalReply {
  uint64_t number = 0;

  template <typename V>
  void each(V& v) {
    v("number", number);
  }
};

// trim_to, trim_point_raise, delivery_done: a bounded part was done.
struct MoreReply {
  bool more = false;  // call again

  template <typename V>
  void each(V& v) {
    v("more", more);
  }
};

// stat, remove; also head_remove.
struct EpochRequest {
  uint64_t epoch = 0;

  template <typename V>
  void each(V& v) {
    v("epoch", epoch);
  }
};

// cursor_list, delivery_list.
struct NamesRequest {
  uint64_t log_id = 0;
  std::string_view after;  // names above it; empty: from the first
  uint32_t count_max = 0;  // in the reply

  template <typename V>
  void each(V& v) {
    v("log_id", log_id);
    v("after", after, wire::name_or_none());
    v("count_max", count_max, between(1, limits::list_page_max));
  }
};

struct SealRequest {
  uint64_t epoch = 0;
  uint32_t stride = 1;            // objects of the stripe: its width
  uint32_t residue = 0;           // below stride; which of them it is
  bool create = false;            // make a missing object; only when its stripe is being made
  std::optional<uint64_t> start;  // no position of the stripe lies below it
  uint32_t unit = 1;              // positions in a row that lie in one object: a power of two

  template <typename V>
  void each(V& v) {
    v("epoch", epoch, between(1, limits::epoch_max));
    v("stride", stride, between(1, limits::width_max));
    v("residue", residue);
    v("create", create);
    v("start", start, wire::position().since(2));
    v("unit", unit, wire::unit(3));
  }
  bool valid() const { return residue < stride && is_unit(unit); }
};

// How much an object holds, by which a client decides when its stripe is full: write.
struct Fullness {
  uint32_t records = 0;  // stored records, each of them an omap key
  uint64_t bytes = 0;    // the bytestream's length, or the data of live entries if that is more

  template <typename V>
  void each(V& v) {
    v("records", records);
    v("bytes", bytes);
  }
};

// max_position.
struct HighestRequest {
  uint64_t epoch = 0;
  uint64_t start = 0;  // where `unwritten` is looked for

  template <typename V>
  void each(V& v) {
    v("epoch", epoch);
    v("start", start, wire::position().since(2));
  }
};

struct HighestReply {
  std::optional<uint64_t> highest;  // the highest position written, filled or trimmed
  // The least of the object's positions from `start` on that may be unwritten, as its header knows
  // it; none: there is no such position, or an older class does not tell.
  std::optional<uint64_t> unwritten;

  template <typename V>
  void each(V& v) {
    v("highest", highest, wire::position());
    v("unwritten", unwritten, wire::position().since(2));
  }
};

struct SealReply {
  std::optional<uint64_t> highest;
  uint32_t records = 0;  // as in Fullness
  uint64_t bytes = 0;
  std::optional<uint64_t> start;  // from here on it counts what it takes
  bool made = true;               // there was no such object; an older class does not tell

  template <typename V>
  void each(V& v) {
    v("highest", highest, wire::position());
    v("records", records);
    v("bytes", bytes);
    v("start", start, wire::position().since(2));
    v("made", made, wire::any().since(3));
  }
};

// A decoded write; client/write_encoder.h encodes one. The columns hold one value per position, in
// position order, and the data is behind the frame: as it is, or in blocks.
struct WriteRequest {
  uint64_t epoch = 0;
  uint64_t timestamp = 0;   // µs since 1970-01-01 UTC, the writer's clock
  std::string_view writer;  // writer_bytes
  uint64_t number = 0;      // base of `numbers`
  Runs runs;
  wire::Column<uint32_t> ends;     // the end of each entry in the plain data; ascending
  wire::Column<uint32_t> crcs;     // entry_crc of each; not checked by decode
  wire::Column<uint32_t> numbers;  // number of each append, less the base
  Compression compression = Compression::kNone;
  std::vector<WriteBlock> blocks;  // none: the data is not compressed
  Tags tags;
  std::string_view data;

  template <typename V>
  void each(V& v) {
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
  bool valid() const { return tags.ids.size() <= limits::tag_ids_max && tags.valid(runs.count()); }
  uint8_t needs() const { return tags.any() ? 3 : blocks.empty() ? 1 : 2; }

  // What is behind the frame: zeros, at most padding_bytes_max of them, and then the data.
  bool take_data(std::string_view behind);

  bool compressed() const { return !blocks.empty(); }
  uint32_t begin_of(uint32_t i) const { return i == 0 ? 0 : ends[i - 1]; }
  uint32_t bytes_of(uint32_t i) const { return ends[i] - begin_of(i); }
  std::string_view data_of(uint32_t i) const {  // where the data is not compressed
    return data.substr(begin_of(i), bytes_of(i));
  }
  uint64_t number_of(uint32_t i) const { return number + numbers[i]; }
};

struct ReadRequest {
  uint64_t epoch = 0;
  bool with_ids = false;   // also the writer, the append's number and the fill reason of each
  uint32_t bytes_max = 0;  // bytes of data to stop before; the first entry comes whatever its size
  Runs runs;
  bool blocks = false;        // what is stored in blocks may come so; else it is unreadable
  bool tags = false;          // also the tags of each
  bool without_data = false;  // of the entries; bytes_max then does not count

  template <typename V>
  void each(V& v) {
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
  uint32_t bytes_max = 0;  // bytes of data to check before stopping; the first entry always is
  Runs runs;
  bool keys_only = false;  // leave out what lies in the bytestream

  template <typename V>
  void each(V& v) {
    v("epoch", epoch);
    v("bytes_max", bytes_max);
    v("runs", runs);
    v("keys_only", keys_only, wire::any().since(2));
  }
};

struct FillRequest {
  uint64_t epoch = 0;
  uint64_t timestamp = 0;   // µs since 1970-01-01 UTC
  std::string_view writer;  // writer_bytes: who filled
  FillReason reason = FillReason::kUnknown;
  Runs runs;

  template <typename V>
  void each(V& v) {
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

  template <typename V>
  void each(V& v) {
    v("epoch", epoch);
    v("runs", runs);
  }
};

struct TrimToRequest {
  uint64_t epoch = 0;
  uint64_t position = 0;     // everything below it goes
  uint32_t records_max = 0;  // records to free in this call

  template <typename V>
  void each(V& v) {
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
  uint64_t bytes = 0;         // data of those
  uint64_t records = 0;       // stored records
  uint64_t stream_bytes = 0;  // length of the object's bytestream, holes included
  uint32_t stride = 1;        // the geometry that the object was made with
  uint32_t residue = 0;
  uint32_t unit = 1;
  std::optional<uint64_t> stored_bytes;  // what the data takes; an older class does not tell

  template <typename V>
  void each(V& v) {
    v("object_epoch", object_epoch);
    v("highest", highest, wire::position());
    v("trim_point", trim_point);
    v("entries", entries);
    v("bytes", bytes);
    v("records", records);
    v("stream_bytes", stream_bytes);
    v("stride", stride);
    v("residue", residue);
    v("unit", unit, wire::any().since(2));
    v("stored_bytes", stored_bytes, wire::any().since(3));
  }
};

struct CountRequest {
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

// What the object holds of the positions [start, end), `end` being this one. Positions below its
// trim point hold nothing, and are no hole.
struct CountReply {
  uint64_t end = 0;                   // as asked for, or where a bounded part of the work ended
  uint64_t entries = 0;               // written and not trimmed, nor damaged
  uint64_t bytes = 0;                 // data of those
  std::optional<uint64_t> hole;       // the first position that is unwritten
  std::optional<uint64_t> last;       // the last position of an entry
  std::optional<uint64_t> oldest;     // the least timestamp of an entry
  std::optional<uint64_t> newest;     // the greatest one
  bool lost = false;                  // records of some positions are damaged or gone
  std::optional<uint64_t> oldest_at;  // the first position that has that timestamp
  std::optional<uint64_t> newest_at;

  template <typename V>
  void each(V& v) {
    v("end", end, wire::position_or_end());
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

// What is known of positions that follow each other in a verify's request.
struct VerifiedRow {
  uint32_t length = 0;                        // positions
  EntryState state = EntryState::kUnwritten;  // kLost also where stored data fails its CRC
  WriterId writer = {};                       // zeros where no append is known
  uint64_t number = 0;                        // of the first position's append
  uint32_t step = 0;   // what the number grows by from one position to the next
  uint64_t bytes = 0;  // data of all written entries

  template <typename V>
  void each(V& v) {
    v("length", length, between(1, limits::entries_max));
    v("state", state, at_most(EntryState::kUnreadable));
    v("writer", writer);
    v("number", number);
    v("step", step);
    v("bytes", bytes);
  }
  bool valid() const { return uint64_t{length - 1} * step <= UINT64_MAX - number; }

  // Whether each position holds, or held until it was trimmed, an append that is known.
  bool has_ids() const {
    return (state == EntryState::kWritten || state == EntryState::kTrimmed) && writer != WriterId();
  }
};

// About the first `count` of the positions that were asked.
struct VerifyReply {
  std::optional<uint64_t> highest;
  uint32_t count = 0;
  std::vector<VerifiedRow> rows;

  template <typename V>
  void each(V& v) {
    v("highest", highest, wire::position());
    v("count", count, between(1, limits::entries_max));
    v("rows", rows, at_most(limits::entries_max));
  }
  bool valid() const;
};

}  // namespace zlog
