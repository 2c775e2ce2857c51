#pragma once

#include <cstdint>
#include <vector>

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/stripe/header.h"
#include "cls_zlog/stripe/record.h"
#include "cls_zlog/stripe/tag_chunks.h"
#include "cls_zlog/wire/select_messages.h"
#include "cls_zlog/wire/tags.h"

// The index of tags of a stripe object (docs/formats/tag-index.md): when its chunks are made, and of what.
//
// Records are the truth, and the index says where to look. Once entries with enough tags, or enough
// records, have come together, they get a chunk; what is above the last chunk is looked through. An
// entry that comes late, to a position in a chunk, is added to that. What is trimmed stays in it until
// the chunk goes: who finds a place looks whether the entry is there.
namespace zlog::stripe {

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

}  // namespace zlog::stripe
