#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/wire/messages.h"
#include "stripe_client.h"

namespace zlog {

// What a stripe object is, said as simply as possible: a map of positions. The rules are those of
// cls_zlog/stripe/stripe.h, and the tests hold the real thing against them.
class StripeModel {
 public:
  // One position that is not unwritten.
  struct Cell {
    ReadResult known;
    bool entry = false;  // it held an entry once, whose identity is kept
  };

  explicit StripeModel(uint32_t stride, uint32_t residue) : stride_(stride), residue_(residue) {}

  uint64_t epoch() const { return epoch_; }
  uint64_t trim_point() const { return trim_point_; }
  const std::map<uint64_t, Cell>& cells() const { return cells_; }

  // What the position reads as.
  ReadResult at(uint64_t position) const {
    if (position < trim_point_) return {EntryState::kTrimmed, 0, {}, 0, FillReason::kUnknown, {}};
    const auto cell = cells_.find(position);
    return cell == cells_.end() ? ReadResult() : cell->second.known;
  }

  Highest highest() const {
    Highest highest;
    if (!cells_.empty()) highest = {true, cells_.rbegin()->first};
    for (uint64_t p = residue_; p < trim_point_; p += stride_) {
      highest = {true, std::max(highest.position, p)};
    }
    return highest;
  }

  uint64_t entries() const {
    return static_cast<uint64_t>(
        std::count_if(cells_.begin(), cells_.end(), [&](const auto& cell) {
          return at(cell.first).state == EntryState::kWritten;
        }));
  }

  int seal(uint64_t epoch) {
    if (epoch <= epoch_) return kInvalidEpoch;
    epoch_ = epoch;
    return kOk;
  }

  // `blocked_by` is the position of a kReadOnly.
  int write(uint64_t epoch, uint64_t timestamp, std::string_view writer,
            const std::vector<NewEntry>& entries, uint64_t* blocked_by) {
    bool blocked = false;
    bool missing = false;
    for (const NewEntry& entry : entries) {
      const auto cell = cells_.find(entry.position);
      if (cell == cells_.end() && entry.position >= trim_point_) {
        missing = true;
      } else if (cell == cells_.end() || !same(cell->second, writer, entry.number)) {
        if (!blocked) *blocked_by = entry.position;
        blocked = true;
      }
    }
    if (!blocked && !missing) return kOk;
    if (epoch < epoch_) return kStaleEpoch;
    if (blocked) return kReadOnly;
    for (const NewEntry& entry : entries) {
      const ReadResult known = {EntryState::kWritten, timestamp, std::string(writer), entry.number,
                                FillReason::kUnknown, std::string(entry.data)};
      cells_.insert({entry.position, {known, true}});
    }
    return kOk;
  }

  int fill(uint64_t epoch, uint64_t timestamp, std::string_view writer, FillReason reason,
           const std::vector<uint64_t>& positions, uint64_t* blocked_by) {
    if (epoch < epoch_) return kStaleEpoch;
    for (const uint64_t position : positions) {
      *blocked_by = position;
      if (at(position).state == EntryState::kWritten) return kReadOnly;
    }
    const ReadResult junk = {EntryState::kFilled, timestamp, std::string(writer), 0, reason, {}};
    for (const uint64_t position : positions) {
      if (position >= trim_point_) cells_.insert({position, {junk, false}});
    }
    return kOk;
  }

  int trim(uint64_t epoch, const std::vector<uint64_t>& positions) {
    if (epoch < epoch_) return kStaleEpoch;
    for (const uint64_t position : positions) {
      if (position < trim_point_) continue;
      Cell& cell = cells_[position];
      if (!cell.entry) cell.known = ReadResult();
      cell.known.state = EntryState::kTrimmed;
      cell.known.data.clear();
    }
    return kOk;
  }

  // What lies below the point is freed at once here, identity included: the real thing keeps it
  // for as long as it keeps the record, so ask it nothing about entries there.
  int trim_to(uint64_t epoch, uint64_t position) {
    if (epoch < epoch_) return kStaleEpoch;
    trim_point_ = std::max(trim_point_, position);
    return kOk;
  }

  // Whether an entry of the batch was written and lies below the trim point by now.
  bool may_be_forgotten(const std::vector<NewEntry>& entries) const {
    return std::any_of(entries.begin(), entries.end(), [&](const NewEntry& entry) {
      return entry.position < trim_point_ && cells_.count(entry.position) != 0;
    });
  }

 private:
  static bool same(const Cell& cell, std::string_view writer, uint64_t number) {
    return cell.entry && cell.known.writer == writer && cell.known.number == number;
  }

  const uint32_t stride_;
  const uint32_t residue_;
  uint64_t epoch_ = 0;
  uint64_t trim_point_ = 0;
  std::map<uint64_t, Cell> cells_;
};

}  // namespace zlog
