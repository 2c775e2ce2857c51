#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/base/striping.h"
#include "cls_zlog/client/mac.h"
#include "cls_zlog/wire/append_messages.h"

namespace zlog {

struct NewEntry {
  uint64_t position = 0;
  uint64_t number = 0;  // the append's number: with the writer's id it identifies the append
  std::string_view data;
};

// The tags of submitted entries, as indices of `names`. The tags of entry i are ids[begins[i]] to
// ids[begins[i + 1] - 1]. If `begins` has only two elements, all entries share the same tags.
struct EntryTags {
  std::vector<std::string> names;
  std::vector<uint32_t> begins;
  std::vector<uint32_t> ids;

  size_t begin_of(size_t i) const { return begins[begins.size() == 2 ? 0 : i]; }
  size_t end_of(size_t i) const { return begins[begins.size() == 2 ? 1 : i + 1]; }
};

// What an append has in addition to its entries.
struct AppendHead {
  uint64_t since = 0;
  std::vector<AppendPart> parts;  // which have all entries together
};

// What the entries of one write have in common.
struct WriteHead {
  uint64_t epoch = 0;
  uint64_t timestamp = 0;                        // µs since 1970-01-01 UTC
  std::string_view writer;                       // the writer's id, writer_bytes
  Striping striping;                             // of the object
  Compression compression = Compression::kNone;  // used if there is enough data
  const EntryTags* tags = nullptr;
  const MacKey* mac = nullptr;         // nullptr: no MACs; else the key must be known
  const AppendHead* append = nullptr;  // encode an append, which has no positions and no MACs
};

// Encodes a write or append (docs/formats/wire.md) in three steps: begin() measures it, compress() compresses
// the data if that saves space, and encode() writes every byte to its final place. Each entry is
// copied only once; its checksum and MAC are computed while the copy is still in the processor's
// cache. The MAC is part of the entry's data.
class WriteEncoder {
 public:
  // Begins a write of `count` entries, which must exist until encode() returns. If `in_a_row` is
  // set, `entries` are at consecutive positions, and those that do not belong to the first entry's
  // object are skipped. `index` is the index of the first entry's tags. Returns -EINVAL if the
  // positions do not ascend or belong to several objects, if the append numbers differ by 2^32 or
  // more, or if the write exceeds a limit. An append's numbers must ascend; positions are ignored.
  int begin(const WriteHead& head, const NewEntry* entries, size_t count, bool in_a_row = false,
            size_t index = 0);

  // Compresses the data if that was requested and saves enough.
  void compress();

  // Returns the size of the request.
  size_t size() const { return size_; }

  // Writes the request, size() bytes.
  void encode(char* out) const;

 private:
  class Copier;

  bool encode_fields();
  void frame(Compression compression, const std::vector<WriteBlock>& blocks);
  std::vector<size_t> block_begins() const;
  bool make_blocks(std::vector<WriteBlock>* blocks);

  bool encode_tags(const EntryTags& tags);

  size_t index_of(size_t i) const {
    return in_a_row_ ? head_.striping.after(entries_->position, i) - entries_->position : i;
  }
  const NewEntry& entry(size_t i) const { return entries_[index_of(i)]; }

  // Returns the size of an entry's stored data.
  size_t bytes_of(const NewEntry& entry) const {
    return entry.data.size() + (head_.mac == nullptr ? 0 : mac_bytes);
  }

  WriteHead head_;
  const NewEntry* entries_ = nullptr;
  size_t count_ = 0;
  size_t tags_index_ = 0;  // of the first entry's tags
  bool in_a_row_ = false;
  uint64_t base_ = 0;      // the smallest number
  size_t data_bytes_ = 0;  // plain
  size_t padding_ = 0;     // bytes before the data
  std::string fields_;     // before the columns
  std::string tags_;       // the fields of tags
  std::string tail_;       // the fields after the columns
  std::string crcs_;       // if compressed: the column
  std::string blocks_;     // and the data
  size_t size_ = 0;
  bool tagged_ = false;
};

}  // namespace zlog
