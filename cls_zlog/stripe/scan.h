#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/stripe/layout.h"
#include "cls_zlog/stripe/stripe.h"

namespace zlog::stripe {

// Returns what a record says about its position with this index, without the data.
inline ReadEntry entry_of(const Record& record, uint32_t index) {
  ReadEntry entry;
  entry.state = record.state_of(index);
  entry.timestamp = record.origin.timestamp;
  entry.writer = record.origin.writer;
  entry.reason = record.reason;
  if (record.holds_entries()) {
    entry.crc = record.crcs[index];
    entry.number = record.origin.number + record.numbers[index];
  }
  return entry;
}

// Returns whether `data`, the block of a compressed record, is intact.
inline bool intact_block(const Record& record, std::string_view data) {
  return data.size() == record.block.stored_bytes && crc32c(data) == record.block.crc;
}

// How much of the data is in blocks, as Header::block_data and block_bytes count it.
struct BlockTally {
  uint64_t data = 0;
  uint64_t bytes = 0;
};

// Counts the entries at positions [start, end) and their bytes. A block that is partly in the range
// counts with all of its stored bytes. Defined in count.cc.
int tally(Object& object, const Header& header, uint64_t start, uint64_t end, CountReply* reply,
          BlockTally* blocks);

// The blocks in a reply that is built by one or more scans.
struct BlocksSeen {
  std::string last;    // key of the last one
  uint64_t bytes = 0;  // the larger of plain and stored bytes, of all
};

// Passes positions to a Reply, one after the other, until the reply is full. A Reply has:
//   void add(const ReadEntry&)   adds the next position, which has no data
//   int add_written(const Stored&, uint32_t first, uint32_t count)
//                                adds the next `count` positions, which are the written entries of
//                                a record from index `first` on; an error ends the scan
//   bool takes_data()            returns whether the reply contains data, whose size is limited
//   uint64_t data_bytes(), uint32_t count()   return the amounts that were added so far
//   bool full()                  returns whether the reply is full for another reason
template <typename Reply>
class Scan {
 public:
  // All arguments must outlive the scan. Scans that build one reply together share `blocks`. `keys`
  // is passed to the Walk.
  Scan(Object& object, const Header& header, const std::vector<uint64_t>& positions,
       uint32_t bytes_max, Reply* reply, BlocksSeen* blocks = nullptr,
       const std::vector<std::string>* keys = nullptr)
      : positions_(positions),
        bytes_max_(std::min(bytes_max, limits::read_reply_bytes_max)),
        striping_(header.striping()),
        header_(header),
        end_(header.records_end()),
        walk_(object, header, positions_, false, keys),
        reply_(reply),
        blocks_(blocks == nullptr ? &own_blocks_ : blocks) {}

  int run() {
    while (!walk_.done() && !full_) {
      Walk::Stretch stretch;
      ZLOG_TRY(walk_.next(&stretch));
      ZLOG_TRY(add(stretch));
      if (walk_.bytes_fetched() >= limits::walk_bytes_enough) full_ = true;
    }
    return 0;
  }
  uint64_t bytes_fetched() const { return walk_.bytes_fetched(); }

 private:
  int add(const Walk::Stretch& stretch) {
    for (uint32_t i = stretch.begin; i < stretch.end && !full_;) {
      if (positions_[i] < header_.trim_point) {
        add_state(EntryState::kTrimmed);
        i++;
      } else if (stretch.stored == nullptr || positions_[i] >= end_) {
        add_state(header_.lost(positions_[i]) ? EntryState::kLost : EntryState::kUnwritten);
        i++;
      } else {
        ZLOG_TRY(add_stored(*stretch.stored, stretch.end, &i));
      }
    }
    return 0;
  }

  void add_state(EntryState state) {
    ReadEntry entry;
    entry.state = state;
    reply_->add(entry);
  }

  // Adds the i-th position, and following positions below the `end`-th whose data is read with it.
  int add_stored(const Stored& stored, uint32_t end, uint32_t* i) {
    const uint32_t first = striping_.index(stored.span, positions_[*i]);
    if (stored.record.state_of(first) != EntryState::kWritten) {
      reply_->add(entry_of(stored.record, first));
      (*i)++;
      return 0;
    }
    if (!affordable(stored)) {
      full_ = true;
      return 0;
    }
    const uint32_t count = affordable(stored, end, *i);
    *i += count;
    full_ = count == 0;
    if (full_) return 0;
    ZLOG_TRY(reply_->add_written(stored, first, count));
    full_ = reply_->full();
    return 0;
  }

  // Adds a record's block to the blocks in the reply. Returns false if readers would then have to
  // decompress too much. A block counts with its plain or its stored size, whichever is larger,
  // because a hostile writer can make the stored block larger.
  bool affordable(const Stored& stored) {
    if (!stored.record.compressed() || !reply_->takes_data()) return true;
    if (stored.key == blocks_->last) return true;
    const Block& block = stored.record.block;
    blocks_->bytes += std::max(block.plain_bytes, block.stored_bytes);
    if (blocks_->bytes > limits::read_blocks_bytes_max) return false;
    blocks_->last = stored.key;
    return true;
  }

  // Returns how many consecutive written entries fit into the reply, starting at the i-th position.
  // The first entry of a reply always fits; otherwise large entries could not be read.
  uint32_t affordable(const Stored& stored, uint32_t end, uint32_t i) const {
    const uint32_t first = striping_.index(stored.span, positions_[i]);
    uint64_t bytes = reply_->data_bytes();
    uint32_t count = 0;
    while (i + count < end && positions_[i + count] == striping_.after(positions_[i], count) &&
           stored.record.written(first + count)) {
      if (reply_->takes_data()) bytes += stored.record.bytes_of(first + count);
      const bool first_of_reply = reply_->count() + count == 0;
      if (bytes > bytes_max_ && !first_of_reply) break;
      count++;
    }
    return count;
  }

  const std::vector<uint64_t>& positions_;
  const uint32_t bytes_max_;
  const Striping striping_;
  const Header& header_;
  const uint64_t end_;  // no record was stored at or above it
  Walk walk_;
  Reply* const reply_;
  BlocksSeen own_blocks_;
  BlocksSeen* const blocks_;
  bool full_ = false;
};

}  // namespace zlog::stripe
