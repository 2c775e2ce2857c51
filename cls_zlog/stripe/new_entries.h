#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cls_zlog/stripe/layout.h"

// The entries of a write or append: compares them with stored ones, and stores them.
namespace zlog::stripe {

// A block of a compressed request.
struct SentBlock {
  uint32_t begin = 0;  // its entries
  uint32_t end = 0;
  std::string_view data;
  Block block;  // of a record that begins with its first entry

  // The block of a record that begins with entry i.
  Block at(const SentEntries& sent, uint32_t i) const {
    Block part = block;
    part.skip = sent.begin_of(i) - sent.begin_of(begin);
    return part;
  }
  // Returns whether a stored block is this one. A damaged block counts as the same, because its
  // header has the same checksum.
  bool same_bytes(std::string_view found) const;
};

// The entries of a request with their positions, tags and blocks.
struct NewEntries {
  // `placed`: whether the request's checksums cover the positions. An append has no positions at
  // first.
  NewEntries(const SentEntries& sent_entries, bool placed, std::vector<uint64_t> at);

  const SentBlock& block_with(uint32_t i) const;

  // Compares the checksums of blocks, or of entries that are not compressed.
  bool intact() const;

  // Returns the entry_crc of the i-th entry at a position.
  uint32_t crc_at(uint32_t i, uint64_t position) const;

  const SentEntries& sent;
  const bool placed;
  std::vector<uint64_t> positions;
  const TagsReader tags;
  std::vector<SentBlock> blocks;
};

// Compares entries of a request and of a record.
class Comparison {
 public:
  enum class Verdict : uint8_t {
    kSame,
    kOther,    // another append, or other data under the same id
    kCompare,  // the same id and checksum; only clients can decompress and compare the data
  };

  Comparison(Layout* layout, const Header& header, const Stored& stored, const NewEntries& entries)
      : layout_(layout),
        header_(header),
        stored_(stored),
        stored_tags_(stored.record.tags),
        entries_(entries) {}

  // Compares `count` entries from the i-th on with those of the record from `index` on. An entry is
  // the same even if the stored one was damaged or trimmed later. Readers learn the ids of appends,
  // so another writer may have stored other data under this id. If either entry is compressed,
  // their data is the same only if their blocks are.
  int run(uint32_t i, uint32_t index, uint32_t count, std::vector<Verdict>* out);

 private:
  bool same_id(uint32_t i, uint32_t index) const;
  int same_block(uint32_t i, uint32_t index, bool* out);
  uint64_t position_of(uint32_t index) const {
    return header_.striping().after(stored_.span.first, index);
  }

  Layout* const layout_;
  const Header& header_;
  const Stored& stored_;
  const TagsReader stored_tags_;
  const NewEntries& entries_;
  const SentBlock* compared_ = nullptr;  // the block that was compared last
  bool same_ = false;
};

// Stores the entries with these indices, whose positions must be unwritten, and saves the header.
int store(Object& object, Header* header, const NewEntries& entries,
          const std::vector<uint32_t>& open);

}  // namespace zlog::stripe
