#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/span.h"
#include "cls_zlog/stripe/header.h"
#include "cls_zlog/stripe/record.h"
#include "cls_zlog/stripe/sparse.h"

// Where things are in a stripe object; nothing else knows (docs/formats/record.md):
//
//   one omap key per record:  e.<last position, 16 hex digits>.<number of positions, hex>
//   value:                    the record, with its entries' data behind it when that is little
//   bytestream:               the data of larger batches, one after the other
//
// A record covers positions in a row, and no two records of an object share a position. Its key
// ends in its last position, so the first key >= p belongs to the record that covers p, if any
// does; and it says how many there are, so that the positions of a damaged record are still known.
namespace zlog {

// What keys of records begin with, and no other key of any object.
constexpr std::string_view kRecords = "e.";

// The positions that the record of a key covers, in an object with these positions. False for what
// is no such key; only the one spelling that a write gives is one.
bool parse_key(std::string_view key, const Spacing& spacing, uint32_t residue, Span* out);

// A record in place. It points into the iterator's page: valid until the iterator moves.
struct Stored {
  std::string_view key;
  Span span;
  Record record;
  Buffer value;  // that it was decoded from
};

// Reads the records of an object upwards, a bounded page at a time. Of a sparse record it gives pieces,
// each a record as others are: an entry, or trimmed positions.
class RecordIterator {
 public:
  // `likely`: how many records the caller is likely to look at. That many are fetched at first. Then
  // twice as many each time, unless half of the last ones or more were passed by: then as many as were
  // used. Neither does a short look read much that it won't use, nor one at positions far apart, nor
  // does a long one ask often.
  RecordIterator(Object& object, const Header& header, uint64_t likely);

  // The lowest record that ends at or above `position`: the one that covers it, or the next one;
  // nullptr when there is none. Positions fall from call to call only to those that are at hand. -EIO:
  // a key that is none of ours; -E2BIG: more records than one call may look at.
  int seek(uint64_t position, const Stored** out);

  // The same for who is to change a record: as it is stored.
  int seek_whole(uint64_t position, const Stored** out);

  // Whether a seek finds the record in the page that was fetched last.
  bool at_hand(uint64_t position) const;

  // Has the next seek fetch as if it were the first one, also for a position below.
  void start_over(uint64_t likely);

  // Bytes of records read so far.
  uint64_t bytes_fetched() const { return bytes_fetched_; }

 private:
  int fetch(uint64_t position);
  void cut(uint64_t position);

  Object& object_;
  const Spacing spacing_;
  const uint32_t residue_;
  const uint64_t page_max_;  // records
  uint64_t page_next_;       // records that were fetched last, or are to be at first
  uint64_t used_ = 0;        // of the page
  uint64_t bytes_fetched_ = 0;
  bool more_ = true;  // above the page
  Page page_;
  std::string page_begin_;  // what its keys are above
  Page::const_iterator at_ = page_.end();
  Stored current_;
  Stored piece_;  // of it
  char piece_end_[sizeof(uint32_t)] = {};
  std::vector<uint32_t> name_begins_;  // of its entries, once one of them was asked for
};

// Cuts positions into stretches that one record covers and stretches that none does. They ascend; or
// they descend, and then the records are fetched a few at a time, twice as many each time.
class Walk {
 public:
  struct Stretch {
    const Stored* stored = nullptr;  // nullptr: nothing is stored for these positions
    uint32_t begin = 0;              // the first of them: an index into the positions
    uint32_t end = 0;                // one past the last
  };

  // `whole`: with records as they are stored, and not in pieces.
  Walk(Object& object, const Header& header, const std::vector<uint64_t>& positions,
       bool whole = false);

  bool done() const { return at_ == positions_.size(); }
  int next(Stretch* out);
  uint64_t bytes_fetched() const { return records_.bytes_fetched(); }

 private:
  int fetch_below();

  const Header& header_;
  const std::vector<uint64_t>& positions_;
  const bool whole_;
  const bool descending_;
  RecordIterator records_;
  uint32_t at_ = 0;
  uint32_t ahead_ = 0;  // positions below the next one that are fetched with it
};

// Entries at positions in a row, to be stored.
struct Batch {
  RecordOrigin origin;
  uint64_t first = 0;
  std::vector<RecordEntry> entries;
  uint64_t data_bytes = 0;  // of all entries
  Block block;              // where the data is compressed
  std::string_view data;    // of all entries, one after the other; or the block
  uint64_t beside = 0;      // bytes of blocks that are stored together with it
  Tags tags;
};

// Changes an object's records, and the header's counters with them; saving the header is the
// caller's.
class Layout {
 public:
  Layout(Object& object, Header& header) : object_(object), header_(header) {}

  // The data of entries [begin, end) of a record that is not compressed, all of them written: a view
  // into the record or into `buffer`. Shorter than it should be when the bytestream ends too early.
  int data_of(const Stored& stored, uint32_t begin, uint32_t end, std::string* buffer,
              std::string_view* out);

  // The same of the block of a compressed record.
  int block_of(const Stored& stored, std::string* buffer, std::string_view* out);

  // Answers with the data of entries [begin, end) of a record, all of them written; with fewer when
  // the bytestream ends too early. `answered`: one past the last of them. Of a compressed record it
  // is the block, or nothing.
  int answer(const Stored& stored, uint32_t begin, uint32_t end, uint32_t* answered);

  // Store at positions of which none is covered by a record.
  int append(const Batch& batch);
  int put_fill(const Span& span, const RecordOrigin& origin, FillReason reason);
  int put_trimmed(const Span& span);
  int put_sparse(const Span& span, const SparseBuilder& entries);

  // Trims some of the positions (ascending) of a record that is readable: the data of entries is
  // freed and their identity kept, but in a sparse record; a record without entries is split.
  int trim(const Stored& stored, const std::vector<uint64_t>& positions);

  // Frees what a record that is about to be removed holds outside its key.
  int free(const Stored& stored);

  // The same of one whose entries are stored anew, but for so many of them with so much data.
  int give_back(const Stored& stored, uint64_t gone, uint64_t gone_bytes);

  // Removes the records from the one with key `first` to the one with key `last`, `count` in
  // number.
  int remove(const std::string& first, const std::string& last, uint64_t count);

 private:
  int append_block(const Batch& batch);
  int append_stream(const Batch& batch);
  int append_inline(const Batch& batch);
  int trim_entries(const Stored& stored, const std::vector<uint64_t>& positions);
  int trim_stream(const Stored& stored, const std::vector<RecordEntry>& entries,
                  const std::vector<uint32_t>& gone);
  int trim_inline(const Stored& stored, std::vector<RecordEntry> entries);
  int trim_block(const Stored& stored, const std::vector<RecordEntry>& entries);
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
  Span span_of(const Batch& batch) const;
  std::string key_of(const Span& span) const;

  Object& object_;
  Header& header_;
};

}  // namespace zlog
