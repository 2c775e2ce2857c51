#pragma once

#include <cstdint>
#include <vector>

#include "cls_zlog/stripe/layout.h"
#include "cls_zlog/stripe/tag_chunks.h"
#include "cls_zlog/wire/select_messages.h"

// The index of a stripe object's tags (docs/formats/tag-index.md).
//
// Once enough tags or records have been written above the last chunk, a new chunk indexes them;
// until then, select reads these records. An entry that is written late, at a position that a chunk
// already covers, is added to that chunk. Entries that are trimmed later stay in their chunk, so
// the index is only a hint and every hit must be checked.
namespace zlog::stripe {

// Returns the location of the data of a record's i-th entry.
TagLocation location_of(const Record& record, uint32_t i, const TagsReader& tags);

// Adds the tag locations of some of a record's entries to `out`. `base` is the index of the first
// of these entries among the chunk's positions.
void add_locations(const Sweep::Part& part, uint32_t base, TagLocations* out);

// Makes a chunk if enough tags or records are not indexed yet. Call this before a write to an
// object with tags; `first` is the write's first position. The chunk covers no position of the
// write, because a method cannot read its own writes. The caller saves the header.
int make_chunks(Object& object, Header* header, uint64_t first);

// Adds the tags of a write's entries at `positions`. `written` has the indexes of the new entries.
int add_tags(Object& object, Header* header, const std::vector<uint64_t>& positions,
             const TagsReader& tags, const std::vector<uint32_t>& written);

}  // namespace zlog::stripe
