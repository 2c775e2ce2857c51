#pragma once

#include <cstdint>
#include <vector>

#include "cls_zlog/stripe/layout.h"
#include "cls_zlog/stripe/tag_chunks.h"
#include "cls_zlog/wire/select_messages.h"

// The index of tags of a stripe object (docs/formats/tag-index.md).
//
// The index is only a hint. Once there are enough tags or records above the last chunk, they get a
// chunk; until then select reads these records. A late entry, at a position in a chunk, is added to
// that chunk. Trimmed entries stay in it, so every hit must be checked.
namespace zlog::stripe {

// Where the data of a record's entry is.
TagLocation location_of(const Record& record, uint32_t i, const TagsReader& tags);

// Adds the locations of a record's part, by tag; `base`: the index of its first position in the chunk.
void add_locations(const Sweep::Part& part, uint32_t base, TagLocations* out);

// Makes a chunk, if it is time, before a write from position `first` on to an object with tags. The
// chunk covers no position of the write, whose entries the method could not read back. The caller
// saves the header.
int make_chunks(Object& object, Header* header, uint64_t first);

// Adds the tags of the entries `written` of a write at `positions`.
int add_tags(Object& object, Header* header, const std::vector<uint64_t>& positions,
             const TagsReader& tags, const std::vector<uint32_t>& written);

}  // namespace zlog::stripe
