#include "cls_zlog/stripe/tag_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cls_zlog/stripe/stripe.h"

namespace zlog::stripe {
namespace {

constexpr uint64_t kChunkLocationsMax = 1u << 31;  // of a chunk's locations, their `index`

// Reads the locations of a span's entries from their records, from position `begin` on. Sets
// `reached` to one past the last position that was read.
int locations_of(Object& object, const Header& header, const Span& span, uint64_t begin,
                 TagLocations* out, uint64_t* reached, uint64_t* bytes) {
  Sweep sweep(object, header, begin, span.last + 1);
  while (!sweep.done() && !sweep.enough()) {
    Sweep::Part part;
    ZLOG_TRY(sweep.next(&part));
    if (part.stored == nullptr || !part.stored->record.holds_entries()) continue;
    add_locations(part, header.striping().index(span, part.first), out);
  }
  *reached = sweep.position();
  *bytes += sweep.bytes_fetched();
  return 0;
}

// Makes the first chunks of an object, in which no entry has tags yet. If one chunk would cover too
// many positions, the lower ones get a separate chunk.
int make_first_chunks(Object& object, Header* header, uint64_t first) {
  const std::optional<uint64_t> taken = header->taken();
  if (!taken) return 0;
  const Striping striping = header->striping();
  const uint64_t end = std::min(header->first_at(*taken + 1), first);
  const uint64_t least = header->first_at(0);
  if (end <= least) {
    header->unindexed_records = limits::chunk_records;
    return 0;
  }
  const uint64_t last = striping.before(end, 1);
  const uint64_t count = striping.length({least, last});
  header->indexed = last + 1;
  if (end <= *taken) header->unindexed_records = limits::chunk_records;
  if (count <= kChunkLocationsMax) return store_chunk(object, *header, {least, last}, {}, {}, {});
  const uint64_t near = striping.before(last, kChunkLocationsMax - 1);
  ZLOG_TRY(store_chunk(object, *header, {least, striping.before(near, 1)}, {}, {}, {}));
  return store_chunk(object, *header, {near, last}, {}, {}, {});
}

// Makes the chunks of [begin, end). Sets `reached` to how far it got.
int rebuild_chunks(Object& object, const Header& header, uint64_t begin, uint64_t end,
                   uint64_t* reached) {
  const Striping striping = header.striping();
  Sweep sweep(object, header, std::max(begin, header.trim_point),
              std::min(end, header.records_end()));
  uint64_t first = sweep.position();  // of the next chunk
  TagLocations locations;
  std::vector<SpanMessage> unknown;
  std::vector<uint32_t> ends;
  std::string last_key;
  uint32_t tags = 0;
  const auto flush = [&](uint64_t chunk_end) -> int {
    if (first >= chunk_end) return 0;
    const Span span = {std::exchange(first, chunk_end), striping.before(chunk_end, 1)};
    tags = 0;
    return store_chunk(object, header, span, std::exchange(locations, {}),
                       std::exchange(unknown, {}), std::exchange(ends, {}));
  };
  while (!sweep.done() && !sweep.enough()) {
    Sweep::Part part;
    ZLOG_TRY(sweep.next(&part));
    const Record* const record = part.stored == nullptr ? nullptr : &part.stored->record;
    if (record != nullptr && striping.length({first, part.first}) > kChunkLocationsMax + 1) {
      ZLOG_TRY(flush(part.first));
    }
    const std::string key(record == nullptr ? "" : part.stored->key);
    // A sparse record has several parts.
    if (!key.empty() && key == std::exchange(last_key, key) && !ends.empty()) ends.pop_back();
    ends.push_back(striping.index({first, part.last}, part.last) + 1);
    if (record == nullptr ? header.lost(part.first, part.last + 1)
                          : record->kind == RecordKind::kLost || record->unreadable()) {
      if (!unknown.empty() && striping.next(unknown.back().last) == part.first) {
        unknown.back().last = part.last;
      } else {
        unknown.push_back({part});
      }
    }
    if (record == nullptr) continue;
    if (record->holds_entries()) {
      add_locations(part, striping.index({first, part.last}, part.first), &locations);
      tags += record->tags.begin_of(part.end) - record->tags.begin_of(part.begin);
    }
    if (tags >= limits::chunk_tags || unknown.size() + 1 >= limits::chunk_unknown_max) {
      ZLOG_TRY(flush(sweep.position()));
    }
  }
  *reached = sweep.position();
  return flush(*reached);
}

// Reports chunks of [begin, end) that are damaged or lack an entry, and positions that are in none.
int check_chunks(Object& object, const Header& header, uint64_t begin, uint64_t end,
                 TagsCheckReply* reply) {
  const Striping striping = header.striping();
  const uint64_t limit = header.first_at(std::min(end, header.indexed));
  std::vector<StoredChunk> chunks;
  ZLOG_TRY(list_chunks(object, header, begin, limit, SIZE_MAX, &chunks));
  const auto note = [&](uint64_t first, uint64_t last) { reply->wrong.push_back({first, last}); };
  uint64_t next = header.first_at(std::max(begin, header.trim_point));
  uint64_t bytes = 0;
  for (const StoredChunk& chunk : chunks) {
    if (bytes >= limits::walk_bytes_enough || reply->wrong.size() + 2 >= limits::list_page_max) {
      reply->end = next;
      return 0;
    }
    if (next < chunk.span.first) note(next, striping.before(chunk.span.first, 1));
    TagLocations stored, found;
    bool sound = true;
    uint64_t reached = 0;
    ZLOG_TRY(read_locations(object, chunk, nullptr, &stored, &sound, &bytes));
    next = std::max(next, chunk.span.first);
    ZLOG_TRY(locations_of(object, header, chunk.span, next, &found, &reached, &bytes));
    const bool whole = reached > chunk.span.last;
    next = whole ? striping.next(chunk.span.last) : reached;
    for (const auto& [tag, locations] : found) {
      const auto known = stored.find(tag);
      sound = sound && known != stored.end() &&
              std::includes(known->second.begin(), known->second.end(), locations.begin(),
                            locations.end());
    }
    if (sound && whole) reply->tags += count_of(stored);
    if (!sound) note(chunk.span.first, chunk.span.last);
    if (!whole) {
      reply->end = reached;
      return 0;
    }
  }
  if (next < limit) note(next, striping.before(limit, 1));
  reply->end = end;
  return 0;
}

}  // namespace

TagLocation location_of(const Record& record, uint32_t i, const TagsReader& tags) {
  TagLocation location;
  if (record.kind != RecordKind::kStream) return location;
  location.offset = static_cast<uint32_t>(record.offset + record.begin_of(i));
  location.bytes = record.bytes_of(i);
  location.crc = record.crcs[i];
  location.timestamp = record.origin.timestamp;
  location.alone = tags.count_of(i) == 1;
  return location;
}

void add_locations(const Sweep::Part& part, uint32_t base, TagLocations* out) {
  const Record& record = part.stored->record;
  if (!record.tags.any()) return;
  const TagsReader tags(record.tags);
  std::vector<std::vector<TagLocation>*> by_id(tags.names().size(), nullptr);
  for (uint32_t i = part.begin; i < part.end; i++) {
    if (!record.written(i)) continue;
    TagLocation location = location_of(record, i, tags);
    location.index = base + (i - part.begin);
    for (uint32_t at = tags.begin_of(i); at < tags.begin_of(i + 1); at++) {
      const uint32_t id = record.tags.ids[at];
      if (by_id[id] == nullptr) by_id[id] = &(*out)[std::string(tags.names()[id])];
      if (by_id[id]->empty() || by_id[id]->back().index != location.index) {
        by_id[id]->push_back(location);
      }
    }
  }
}

int make_chunks(Object& object, Header* header, uint64_t first) {
  if (!header->tagged) {
    header->tagged = true;
    return make_first_chunks(object, header, first);
  }
  if (header->unindexed_tags < limits::chunk_tags &&
      header->unindexed_records < limits::chunk_records) {
    return 0;
  }
  if (first <= header->taken().value_or(0)) return 0;
  uint64_t reached = header->indexed;
  ZLOG_TRY(rebuild_chunks(object, *header, header->indexed, first, &reached));
  const bool all = header->highest && reached > *header->highest;
  header->indexed = reached;
  header->unindexed_tags = 0;
  header->unindexed_records = all ? 0 : limits::chunk_records;
  return 0;
}

int add_tags(Object& object, Header* header, const std::vector<uint64_t>& positions,
             const TagsReader& tags, const std::vector<uint32_t>& written) {
  uint64_t loose = header->unindexed_tags;
  std::vector<uint32_t> late;
  for (const uint32_t i : written) {
    if (positions[i] >= header->indexed) {
      loose += tags.count_of(i);
    } else if (tags.count_of(i) > 0) {
      late.push_back(i);
    }
  }
  header->unindexed_tags = static_cast<uint32_t>(std::min<uint64_t>(loose, UINT32_MAX));
  if (late.empty()) return 0;
  std::vector<StoredChunk> chunks, out_of_use;
  ZLOG_TRY(list_chunks(object, *header, positions[late.front()], positions[late.back()] + 1,
                       SIZE_MAX, &chunks, &out_of_use));
  // A chunk that is out of use cannot get the new entries. It must be removed, because another
  // replica or a later class may be able to read it.
  for (const StoredChunk& chunk : out_of_use) ZLOG_TRY(remove_chunk(object, *header, chunk));
  const Striping striping = header->striping();
  auto next = late.begin();
  uint64_t bytes = 0;
  for (const StoredChunk& chunk : chunks) {
    TagLocations added;
    bool far = false;
    for (; next != late.end() && positions[*next] <= chunk.span.last; ++next) {
      const uint64_t position = positions[*next];
      if (position < chunk.span.first) continue;
      far = far || striping.length({chunk.span.first, position}) > UINT32_MAX;
      TagLocation location;
      location.index = striping.index(chunk.span, position);
      for (const std::string_view tag : tags.of(*next)) {
        std::vector<TagLocation>& all = added[std::string(tag)];
        if (all.empty() || all.back().index != location.index) all.push_back(location);
      }
    }
    if (far) {
      ZLOG_TRY(remove_chunk(object, *header, chunk));
    } else if (!added.empty()) {
      ZLOG_TRY(add_to_chunk(object, *header, chunk, added, &bytes));
    }
  }
  return 0;
}

Result<TagsCheckReply> tags_check(Object& object, const Header& header,
                                  const RangeRequest& request) {
  TagsCheckReply reply;
  reply.end = request.end;
  if (header.tagged) ZLOG_TRY(check_chunks(object, header, request.start, request.end, &reply));
  return reply;
}

Result<EndReply> tags_rebuild(Object& object, const Header& header, const RangeRequest& request) {
  uint64_t begin = std::max(request.start, header.trim_point);
  const uint64_t goal = std::min(request.end, header.indexed);
  uint64_t end = goal;
  if (!header.tagged || begin >= end) return EndReply{request.end};
  ZLOG_TRY(remove_chunks(object, header, &begin, &end));
  uint64_t reached = end;
  ZLOG_TRY(rebuild_chunks(object, header, begin, end, &reached));
  return EndReply{reached < goal ? reached : request.end};
}

}  // namespace zlog::stripe
