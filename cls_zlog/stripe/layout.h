#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/striping.h"
#include "cls_zlog/stripe/header.h"
#include "cls_zlog/stripe/record.h"

// How a stripe object stores records (docs/formats/record.md):
//
//   one omap key per record:  e.<last position, 16 hex digits>.<number of positions, hex>
//   value:                    the record, and its entries' data if that is small
//   bytestream:               the data of larger batches, one after the other
//
// A record covers consecutive positions of the object, and records do not overlap. The record that
// covers position p is therefore found at the first key >= p. Because the key contains the number
// of positions, they are known even if the record's value is damaged.
namespace zlog {

constexpr std::string_view kRecords = "e.";  // the prefix of records' keys

// Joins ascending positions of an object into spans that are as long as possible.
std::vector<Span> spans_of(const std::vector<uint64_t>& positions, const Striping& striping);

// A stored record. It points into the iterator's page, and is valid until the iterator moves.
struct Stored {
  std::string_view key;
  Span span;
  Record record;
  Buffer value;  // the encoded record
};

// Reads the records of an object in ascending order, in pages of limited size. Returns sparse
// records unsplit if `whole` is set. Otherwise it splits them into pieces that look like other
// records, each with one entry or a run of trimmed positions.
class RecordIterator {
 public:
  // The first page has `likely` records. If more than half of a page was used, the next page is
  // twice as large; otherwise it has as many records as were used.
  RecordIterator(Object& object, const Header& header, uint64_t likely, bool whole);

  // Sets `out` to the record that covers `position`, or else to the next record above it, or to
  // nullptr if there is none. Positions must ascend from call to call, except for those that are
  // at_hand(). Returns -EIO if a key is malformed, and -E2BIG once too many bytes were read.
  int seek(uint64_t position, const Stored** out);

  // Returns whether seek() to this position needs no other page.
  bool at_hand(uint64_t position) const;

  // Replaces the page by the records with the given keys, which may be missing. This is faster than
  // a listing, for which an OSD also reads the record after the last one.
  int load(const std::vector<std::string>& keys);

  uint64_t page_max() const { return page_max_; }

  // Makes the next seek() fetch a first page again; its position may be lower.
  void start_over(uint64_t likely);

  // Bytes of records that were read.
  uint64_t bytes_fetched() const { return bytes_fetched_; }

 private:
  int fetch(uint64_t position);
  void cut(uint64_t position);
  bool covers(const std::string& key, uint64_t position) const;

  Object& object_;
  const Striping striping_;
  const uint32_t residue_;
  const bool whole_;
  const uint64_t page_max_;  // records
  uint64_t page_next_;       // size of the last page; at first, of the next one
  uint64_t used_ = 0;        // records of the page
  uint64_t bytes_fetched_ = 0;
  bool more_ = true;     // there are records above the page
  bool picked_ = false;  // load() made the page, and there may be records between its records
  Page page_;
  std::string page_begin_;  // below all of its keys
  Page::const_iterator at_ = page_.end();
  Stored current_;
  Stored piece_;  // of current_
  char piece_end_[sizeof(uint32_t)] = {};
  std::vector<uint32_t> name_begins_;  // of current_; filled by cut()
};

// Divides a list of positions into stretches. The positions of a stretch are in the same record, or
// all have no record. If the list descends, records are fetched in groups, each of which is twice
// as large as the one before.
class Walk {
 public:
  struct Stretch {
    const Stored* stored = nullptr;  // nullptr: no record
    uint32_t begin = 0;              // index of the first position
    uint32_t end = 0;                // one past the last
  };

  // `whole` is passed to the RecordIterator. `keys` may contain for each position the key of the
  // record that probably covers it, or "".
  Walk(Object& object, const Header& header, const std::vector<uint64_t>& positions,
       bool whole = false, const std::vector<std::string>* keys = nullptr);

  bool done() const { return at_ == positions_.size(); }
  int next(Stretch* out);
  uint64_t bytes_fetched() const { return records_.bytes_fetched(); }

 private:
  int fetch_below();
  int load_known();

  const Header& header_;
  const std::vector<uint64_t>& positions_;
  const std::vector<std::string>* const keys_;
  const bool descending_;
  RecordIterator records_;
  uint32_t at_ = 0;
  uint32_t ahead_ = 0;  // positions below the next one to fetch with it
};

// Cuts the range [begin, end) into ascending parts. A part belongs to one record, or has no record.
class Sweep {
 public:
  struct Part : Span {
    const Stored* stored = nullptr;  // nullptr: no record
    uint32_t begin = 0;              // index of the first position in the record
    uint32_t end = 0;                // one past the index of the last position
  };

  Sweep(Object& object, const Header& header, uint64_t begin, uint64_t end, bool whole = false);

  bool done() const { return at_ >= end_; }
  uint64_t position() const { return at_; }  // of the next part
  int next(Part* out);
  uint64_t bytes_fetched() const { return records_.bytes_fetched(); }

  // Returns whether a call that may stop should do so.
  bool enough() const { return bytes_fetched() >= limits::walk_bytes_enough; }

 private:
  const Header& header_;
  RecordIterator records_;
  uint64_t at_;
  const uint64_t end_;
};

// Entries to be stored, at consecutive positions of the object.
struct Batch {
  RecordOrigin origin;
  uint64_t first = 0;
  std::vector<RecordEntry> entries;
  uint64_t data_bytes = 0;  // of all entries
  Block block;              // if the data is compressed
  std::string_view data;    // of all entries, one after the other; or the block
  uint64_t beside = 0;      // bytes of the write's other blocks
  Tags tags;
};

// Changes records, and the header's counters with them. The caller saves the header.
class Layout {
 public:
  Layout(Object& object, Header& header) : object_(object), header_(header) {}

  // Sets `out` to the data of the entries [begin, end) of a record, which must all be written and
  // not compressed. `out` points into the record or into `buffer`. If a part of the data is missing
  // from the bytestream, `out` is shorter.
  int data_of(const Stored& stored, uint32_t begin, uint32_t end, std::string* buffer,
              std::string_view* out);

  // Sets `out` to the block of a compressed record in the same way.
  int block_of(const Stored& stored, std::string* buffer, std::string_view* out);

  // Adds the data of the written entries [begin, end) to the reply, or the whole block if the
  // record is compressed. Sets `answered` to one past the last entry whose data exists.
  int answer(const Stored& stored, uint32_t begin, uint32_t end, uint32_t* answered);

  // These store a record at positions that have none.
  int append(const Batch& batch);
  int put_fill(const Span& span, const RecordOrigin& origin, FillReason reason);
  int put_trimmed(const Span& span);
  int put_sparse(const Span& span, const SparseBuilder& entries);

  // Trims some positions of a readable record, given in ascending order. Frees the entries' data
  // but keeps their ids, so that a repeated append is still recognized; sparse records drop the ids
  // too. Splits a fill into its trimmed and its remaining positions.
  int trim(const Stored& stored, const std::vector<uint64_t>& positions);

  // Frees a record's data in the bytestream. The caller then removes the record.
  int free(const Stored& stored);

  // Frees a record's data like free(), for a caller that stores some of the entries again.
  // Subtracts only the `gone` entries that are not stored again, and their data, from the counters.
  int give_back(const Stored& stored, uint64_t gone, uint64_t gone_bytes);

  // Removes the `count` records whose keys are from `first` to `last`.
  int remove(const std::string& first, const std::string& last, uint64_t count);

 private:
  int bytes_of(const Record& record, uint32_t from, uint32_t length, std::string* buffer,
               std::string_view* out);
  int append_inline(const Batch& batch);
  int trim_entries(const Stored& stored, const std::vector<uint64_t>& positions);
  int trim_sparse(const Stored& stored, const std::vector<uint64_t>& positions);
  void forget(const Record& record, uint64_t entries, uint64_t bytes);
  int free_block(const Record& record);
  int punch(uint64_t offset, uint64_t length);
  int put_value(const std::string& key, const std::string& value);
  int split(const Stored& stored, const std::vector<uint64_t>& positions);
  int put(const std::string& key, const Record& record,
          const std::vector<RecordEntry>& entries = {}, std::string_view data = {});
  int put_new(const Span& span, const Record& record, const std::vector<RecordEntry>& entries = {},
              std::string_view data = {});
  std::string key_of(const Span& span) const;

  Object& object_;
  Header& header_;
};

}  // namespace zlog
