#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/stripe/record.h"

// Sparse records (docs/formats/record.md): entries that compaction has left, of any writes.
namespace zlog {

// Puts together the entries of a sparse record.
class SparseBuilder {
 public:
  struct Entry {
    uint32_t place = 0;
    uint64_t timestamp = 0;
    std::string_view writer;
    uint64_t number = 0;
    uint32_t crc = 0;
    std::string_view tag_names;
    uint8_t tag_count = 0;
    std::string_view data;

    // What it adds to a record's value.
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
  std::string places_, timestamps_, writers_, numbers_, ends_, crcs_, tag_names_, tag_counts_,
      data_;
};

// Calls use(entry) for each entry of a sparse record, ascending.
void each_entry(const Record& record, const std::function<void(const SparseBuilder::Entry&)>& use);

// The tags of the i-th entry, as those of a record with no other.
Tags tags_of(const SparseEntries& left, uint32_t i, const std::vector<uint32_t>& name_begins);

}  // namespace zlog
