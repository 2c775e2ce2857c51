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

// The omap keys of the tag index (docs/formats/tag-index.md). A chunk indexes consecutive
// positions, and distributes their tags over buckets:
//
//   c.<last position, 16 hex digits>.<number of positions, hex>   a chunk
//   t.<bucket, 2 hex digits>.<the chunk's last position>          one of its buckets
namespace zlog::stripe {

constexpr std::string_view kChunks = "c.";
constexpr std::string_view kBuckets = "t.";
constexpr uint32_t kBucketCount = 64;
constexpr size_t kChunksMax = 256;  // chunks that one search upwards uses

// The location of an entry with a tag.
struct TagLocation {
  static constexpr uint32_t kInRecord = UINT32_MAX;

  uint32_t index = 0;           // among the chunk's positions
  uint32_t offset = kInRecord;  // of the data in the bytestream; kInRecord: see the record
  uint32_t bytes = 0;
  uint32_t crc = 0;
  uint64_t timestamp = 0;
  bool alone = false;  // the entry has no other tag

  bool operator<(const TagLocation& other) const { return index < other.index; }
};

// The locations by tag, in ascending order.
using TagLocations = std::map<std::string, std::vector<TagLocation>, std::less<>>;

struct TagChunk {
  uint64_t buckets = 0;              // bit i: bucket i exists
  uint32_t tags = 0;                 // locations in all buckets
  std::vector<SpanMessage> unknown;  // positions with records that were unreadable
  std::string record_ends;           // u32 each: one past the last index of each record or hole
  wire::Further further;

  ZLOG_FIELDS(v) {
    v("buckets", buckets);
    v("tags", tags, wire::at_most(limits::chunk_tags_max));
    v("unknown", unknown, wire::at_most(limits::chunk_unknown_max));
    v("record_ends", record_ends,
      wire::at_most(limits::chunk_ends_max * sizeof(uint32_t)).since(2));
  }
};

struct StoredChunk {
  Span span;
  TagChunk chunk;
};

// A range that is searched in one way: with a chunk's locations, or by reading its records if there
// is no chunk. A skipped range has no entry with the tags.
struct Segment {
  uint64_t begin = 0;
  uint64_t end = 0;
  const StoredChunk* chunk = nullptr;
  bool skipped = false;
};

// Divides [start, end) into segments. Records are read between chunks, and also at positions whose
// entries a chunk may lack because they were unreadable or unwritten when it was made. The `absent`
// positions are skipped.
std::vector<Segment> segments_of(const Header& header, uint64_t start, uint64_t end,
                                 const std::vector<StoredChunk>& chunks,
                                 const std::vector<Span>& absent = {});

uint32_t count_of(const TagLocations& locations);

// Lists up to `count_max` chunks with positions in [begin, end), in ascending order. Adds chunks
// that are damaged or of a later version to `out_of_use`; their records must be read instead.
int list_chunks(Object& object, const Header& header, uint64_t begin, uint64_t end,
                size_t count_max, std::vector<StoredChunk>* out,
                std::vector<StoredChunk>* out_of_use = nullptr);

// Finds the locations of some tags in a chunk, or of all tags if `tags` is nullptr. Sets `sound` to
// false if a bucket is damaged or missing. Adds the number of bytes read to `bytes`.
int read_locations(Object& object, const StoredChunk& chunk, const std::vector<std::string>* tags,
                   TagLocations* out, bool* sound, uint64_t* bytes);

// Returns the key of the record in which a location was when the chunk was made, and sets `record`
// to its positions. Returns "" if the chunk does not have them.
std::string record_key(const StoredChunk& chunk, uint32_t index, const Striping& striping,
                       Span* record);

// Stores a new chunk. `ends` has the ends of its records and holes, as TagChunk::record_ends.
int store_chunk(Object& object, const Header& header, const Span& span,
                const TagLocations& locations, const std::vector<SpanMessage>& unknown,
                const std::vector<uint32_t>& ends);

// Adds tag locations to a chunk. Removes the chunk instead if it is damaged or would exceed
// chunk_tags_max; records must then be read in its place. Adds the number of bytes read to `bytes`.
int add_to_chunk(Object& object, const Header& header, StoredChunk stored,
                 const TagLocations& locations, uint64_t* bytes);

// Removes a chunk. The records of its positions must be read from then on.
int remove_chunk(Object& object, const Header& header, const StoredChunk& stored);

// Removes chunks that have positions in [begin, end), up to a limit. Sets `begin` and `end` to the
// range that has no chunks afterwards.
int remove_chunks(Object& object, const Header& header, uint64_t* begin, uint64_t* end);

// Removes the chunks that are wholly below the trim point.
int forget_chunks(Object& object, Header* header);

}  // namespace zlog::stripe
