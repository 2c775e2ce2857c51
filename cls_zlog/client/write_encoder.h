#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/base/spacing.h"
#include "cls_zlog/client/mac.h"
#include "cls_zlog/wire/blocks.h"
#include "cls_zlog/wire/tags.h"

namespace zlog {

// One entry as a writer hands it in.
struct NewEntry {
  uint64_t position = 0;
  uint64_t number = 0;  // the append's number: with the writer's id, its identity
  std::string_view data;
};

// The tags of entries that were handed in together. Entry i has the names ids[begins[i]] to
// ids[begins[i + 1] - 1], each once; where there are two begins only, all entries have the same.
struct EntryTags {
  std::vector<std::string> names;
  std::vector<uint32_t> begins;
  std::vector<uint32_t> ids;

  size_t begin_of(size_t i) const { return begins[begins.size() == 2 ? 0 : i]; }
  size_t end_of(size_t i) const { return begins[begins.size() == 2 ? 1 : i + 1]; }
};

// What is common to the entries of one write.
struct WriteHead {
  uint64_t epoch = 0;
  uint64_t timestamp = 0;                        // µs since 1970-01-01 UTC
  std::string_view writer;                       // the writer's id, writer_bytes
  Spacing spacing;                               // of the object that they go to
  Compression compression = Compression::kNone;  // tried where the data is much
  const EntryTags* tags = nullptr;
  const MacKey* mac = nullptr;  // of the entries, if they get MACs; it is known
};

// Encodes a write (docs/formats/wire.md) in steps: begin() measures it, so that encode() can put
// every byte where it is to stay. An entry is copied once, and its CRC taken while the copy is
// in the processor's cache; it is the copy's, so that what is sent is what was summed up. Its MAC, if
// it gets one, is made there too, and counts as its data from here on. In between, compress() makes
// blocks of the data where that pays.
class WriteEncoder {
 public:
  // Takes `count` entries, which must stay until encode(). Where they are at positions in a row, it
  // takes of these from the first one on those that are in its object. Answers 0, or -EINVAL when
  // their positions do not ascend or are of several objects, when a number is not within 2^32 of the
  // smallest, or when a limit is exceeded. `index`: which of those that the tags are of comes first.
  int begin(const WriteHead& head, const NewEntry* entries, size_t count, bool in_a_row = false,
            size_t index = 0);

  // Compresses the data if that was asked for, it is much, and it gets less by that.
  void compress();

  // Bytes of the request.
  size_t size() const { return size_; }

  // Writes the request, size() bytes.
  void encode(char* out) const;

 private:
  class Copier;

  void frame(Compression compression, const std::vector<WriteBlock>& blocks);
  bool make_blocks(std::vector<WriteBlock>* blocks);

  bool encode_tags(const EntryTags& tags, size_t index);

  size_t index_of(size_t i) const {
    return in_a_row_ ? spacing_.after(entries_->position, i) - entries_->position : i;
  }
  const NewEntry& entry(size_t i) const { return entries_[index_of(i)]; }

  // Of an entry's data as it is stored.
  size_t bytes_of(const NewEntry& entry) const {
    return entry.data.size() + (mac_ == nullptr ? 0 : mac_bytes);
  }

  const NewEntry* entries_ = nullptr;
  size_t count_ = 0;
  const EntryTags* entry_tags_ = nullptr;
  size_t tags_index_ = 0;  // which of those that these are of the first entry is
  bool in_a_row_ = false;
  Spacing spacing_;
  Compression compression_ = Compression::kNone;
  const MacKey* mac_ = nullptr;
  uint64_t base_ = 0;      // the smallest number
  size_t data_bytes_ = 0;  // plain
  size_t padding_ = 0;     // bytes before the data
  std::string fields_;     // what comes before the columns
  std::string tags_;       // the fields of tags
  std::string tail_;       // what comes behind them
  std::string crcs_;       // of compressed data: the column
  std::string blocks_;     // and the data
  size_t size_ = 0;
  bool tagged_ = false;
};

// Both steps at once; `out` is unchanged when it answers -EINVAL.
int encode_write(const WriteHead& head, const std::vector<NewEntry>& entries, std::string* out);

}  // namespace zlog
