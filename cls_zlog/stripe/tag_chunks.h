#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/object.h"
#include "cls_zlog/stripe/header.h"
#include "cls_zlog/stripe/span_key.h"

// The chunks of an index of tags, as they are stored:
//
//   c.<last position, 16 hex digits>.<number of positions, hex>   a chunk: positions in a row
//   t.<bucket, 2 hex digits>.<the chunk's last position>          where its tags of that bucket are
//
// docs/formats/tag-index.md
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

uint32_t count_of(const TagPlaces& places);

// The chunks about positions of [begin, end), ascending, the first `count_max` of them. One that is
// damaged, or of a later version, is left out: what it covers is looked through. `out_of_use`: gets these.
int list_chunks(Object& object, const Header& header, uint64_t begin, uint64_t end,
                size_t count_max, std::vector<StoredChunk>* out,
                std::vector<StoredChunk>* out_of_use = nullptr);

// The places of some tags in a chunk: of each those that there are. False in `sound`: a bucket of the
// chunk is damaged or gone.
int read_places(Object& object, const StoredChunk& chunk, const std::vector<std::string>& tags,
                TagPlaces* out, bool* sound);

// All places of a chunk, as they are stored; adds to `bytes` what was read.
int read_all_places(Object& object, const StoredChunk& chunk, TagPlaces* out, bool* sound,
                    uint64_t* bytes);

// Stores what a chunk says of itself, without places.
int put_chunk(Object& object, const Header& header, const Span& span, const TagChunk& chunk);

// Stores a chunk with these places.
int store_chunk(Object& object, const Header& header, const Span& span, const TagPlaces& places,
                const std::vector<Hole>& unknown);

// Adds late entries' places, which ask the record, to a chunk; adds to `bytes` what was read.
int add_late(Object& object, const Header& header, StoredChunk stored, const TagPlaces& late,
             uint64_t* bytes);

// Removes a chunk: what it was about is looked through from then on.
int remove_chunk(Object& object, const Header& header, const StoredChunk& stored);

// Removes the chunks that have positions of [begin, end), or the first ones of them, and says where
// they began and ended.
int remove_chunks(Object& object, const Header& header, uint64_t* begin, uint64_t* end);

// Removes the chunks that lie wholly below the trim point.
int forget_chunks(Object& object, Header* header);

}  // namespace zlog::stripe
