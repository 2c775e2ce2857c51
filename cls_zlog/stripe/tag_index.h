#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/stripe/header.h"
#include "cls_zlog/stripe/record.h"
#include "cls_zlog/wire/select_messages.h"
#include "cls_zlog/wire/tags.h"

// The index of tags of a stripe object (docs/formats/tag-index.md):
//
//   c.<last position, 16 hex digits>.<number of positions, hex>   a chunk: positions in a row
//   t.<bucket, 2 hex digits>.<the chunk's last position>          where its tags of that bucket are
//
// Records are the truth, and the index says where to look. Once entries with enough tags, or enough
// records, have come together, they get a chunk; what is above the last chunk is looked through. An
// entry that comes late, to a position in a chunk, is added to that. What is trimmed stays in it until
// the chunk goes: who finds a place looks whether the entry is there.
namespace zlog::stripe {

constexpr std::string_view kChunks = "c.";
constexpr std::string_view kBuckets = "t.";
constexpr uint32_t kBucketCount = 64;

// Where an entry with a tag is: which position of its chunk, and where its data lies.
struct TagPlace {
  static constexpr uint32_t kInRecord = UINT32_MAX;

  uint32_t index = 0;           // counted from the chunk's first position
  uint32_t offset = kInRecord;  // in the bytestream; kInRecord: ask the record
  uint32_t bytes = 0;
  uint32_t crc = 0;
  uint64_t timestamp = 0;
  bool alone = false;  // it has no other tag
};

// Places by tag, each tag's ascending.
using TagPlaces = std::map<std::string, std::vector<TagPlace>, std::less<>>;

// What a chunk says of itself.
struct TagChunk {
  uint64_t buckets = 0;       // bit i: bucket i has tags of it
  uint32_t tags = 0;          // places in all of them
  std::vector<Hole> unknown;  // runs whose records could not be read when it was made
  wire::Further further;

  template <typename V>
  void each(V& v) {
    v("buckets", buckets);
    v("tags", tags, wire::at_most(limits::chunk_tags_max));
    v("unknown", unknown, wire::at_most(limits::chunk_unknown_max));
  }
};

struct StoredChunk {
  Span span;
  TagChunk chunk;
};

uint32_t bucket_of(std::string_view tag);

// The chunks about positions of [begin, end), ascending, the first `count_max` of them. One that is
// damaged is left out: what it covers is looked through.
int list_chunks(Object& object, const Header& header, uint64_t begin, uint64_t end,
                size_t count_max, std::vector<StoredChunk>* out);

// The places of some tags in a chunk: of each those that there are. False in `sound`: a bucket of the
// chunk is damaged or gone.
int read_places(Object& object, const StoredChunk& chunk, const std::vector<std::string>& tags,
                TagPlaces* out, bool* sound);

// Where the data of a record's entry is.
TagPlace place_of(const Record& record, uint32_t i, const TagsReader& tags);

// Says of a record's entries [begin, end) where they are, by tag; `base`: the index of its first one.
void add_places(const Record& record, uint32_t begin, uint32_t end, uint32_t base, TagPlaces* out);

// Before a write from this position on to an object with tags: makes a chunk of what has come together.
// None covers a position of the write, which could not add its entries: it does not see what it has just
// stored. Saving the header is the caller's.
int make_chunks(Object& object, Header* header, uint64_t first);

// After it: entries that were written at these positions, ascending. Their tags, in their order, are
// those of `tags` at `which`.
int add_tags(Object& object, Header* header, const std::vector<uint64_t>& positions,
             const TagsReader& tags, const std::vector<uint32_t>& which);

// Makes the chunks of [begin, end) anew; answers how far it came.
int rebuild_chunks(Object& object, const Header& header, uint64_t begin, uint64_t end,
                   uint64_t* reached);

// What of [begin, end) the index does not tell rightly: chunks that are damaged or miss an entry, and
// what lies in none. Looks at a bounded number of records; answers how far it came.
int check_chunks(Object& object, const Header& header, uint64_t begin, uint64_t end,
                 TagsCheckReply* reply);

// Removes the chunks that have positions of [begin, end), or the first ones of them, and says where
// they began and ended.
int remove_chunks(Object& object, const Header& header, uint64_t* begin, uint64_t* end);

// Removes the chunks that lie wholly below the trim point.
int forget_chunks(Object& object, Header* header);

}  // namespace zlog::stripe
