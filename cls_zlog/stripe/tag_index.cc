#include "cls_zlog/stripe/tag_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cls_zlog/stripe/layout.h"
#include "cls_zlog/stripe/stripe.h"

namespace zlog::stripe {
namespace {

constexpr uint64_t kChunkPlacesMax = 1u << 31;  // of a chunk's places, their `index`

// The places of a span from a position on, as the records have them; a part of them, if there is much
// to look at. `reached`: one past the last position.
int places_of(Object& object, const Header& header, const Span& span, uint64_t begin,
              TagPlaces* out, uint64_t* reached, uint64_t* bytes) {
  const Spacing spacing = header.spacing();
  RecordIterator records(object, header, limits::page_records_max);
  uint64_t next = begin;
  *reached = span.last + 1;
  while (next <= span.last) {
    if (records.bytes_fetched() >= limits::walk_bytes_enough) {
      *reached = next;
      break;
    }
    const Stored* stored = nullptr;
    ZLOG_TRY(records.seek(next, &stored));
    if (stored == nullptr || stored->span.first > span.last) break;
    next = std::max(next, stored->span.first);
    const uint64_t last = std::min(stored->span.last, span.last);
    if (stored->record.holds_entries()) {
      add_places(stored->record, spacing.index(stored->span, next),
                 spacing.index(stored->span, last) + 1, spacing.index(span, next), out);
    }
    next = spacing.next(last);
  }
  *bytes += records.bytes_fetched();
  return 0;
}

// When the first entry with tags comes: nothing that is there has some. Where an entry may come late
// its index must be one, so what lies far below is a chunk of its own.
int make_first_chunks(Object& object, Header* header, uint64_t first) {
  const std::optional<uint64_t> taken = header->taken();
  if (!taken) return 0;
  const Spacing spacing = header->spacing();
  const uint64_t end = std::min(header->first_at(*taken + 1), first);
  const uint64_t least = header->first_at(0);
  if (end <= least) {
    header->loose_records = limits::chunk_records;
    return 0;
  }
  const uint64_t last = spacing.before(end, 1);
  const uint64_t count = spacing.length({least, last});
  header->indexed = last + 1;
  if (end <= *taken) header->loose_records = limits::chunk_records;
  if (count <= kChunkPlacesMax) return put_chunk(object, *header, {least, last}, {});
  const uint64_t near = spacing.before(last, kChunkPlacesMax - 1);
  ZLOG_TRY(put_chunk(object, *header, {least, spacing.before(near, 1)}, {}));
  return put_chunk(object, *header, {near, last}, {});
}

}  // namespace

TagPlace place_of(const Record& record, uint32_t i, const TagsReader& tags) {
  TagPlace place;
  if (record.kind != RecordKind::kStream) return place;
  place.offset = static_cast<uint32_t>(record.offset + record.begin_of(i));
  place.bytes = record.bytes_of(i);
  place.crc = record.crcs[i];
  place.timestamp = record.origin.timestamp;
  place.alone = tags.count_of(i) == 1;
  return place;
}

void add_places(const Record& record, uint32_t begin, uint32_t end, uint32_t base, TagPlaces* out) {
  if (!record.tags.any()) return;
  const TagsReader tags(record.tags);
  std::vector<std::vector<TagPlace>*> by_id(tags.names().size(), nullptr);
  for (uint32_t i = begin; i < end; i++) {
    if (!record.written(i)) continue;
    TagPlace place = place_of(record, i, tags);
    place.index = base + (i - begin);
    for (uint32_t at = tags.begin_of(i); at < tags.begin_of(i + 1); at++) {
      const uint32_t id = record.tags.ids[at];
      if (by_id[id] == nullptr) by_id[id] = &(*out)[std::string(tags.names()[id])];
      if (by_id[id]->empty() || by_id[id]->back().index != place.index) {
        by_id[id]->push_back(place);
      }
    }
  }
}

int rebuild_chunks(Object& object, const Header& header, uint64_t begin, uint64_t end,
                   uint64_t* reached) {
  const Spacing spacing = header.spacing();
  const uint64_t limit = std::min(end, header.highest ? *header.highest + 1 : 0);
  RecordIterator records(object, header, limits::page_records_max);
  uint64_t next = header.first_at(std::max(begin, header.trim_point));
  uint64_t first = next;
  TagPlaces places;
  std::vector<Hole> unknown;
  uint32_t tags = 0;
  const auto flush = [&]() -> int {
    if (first >= next) return 0;
    const Span span = {first, spacing.before(next, 1)};
    first = next;
    tags = 0;
    return store_chunk(object, header, span, std::exchange(places, {}), std::exchange(unknown, {}));
  };
  const auto note_unknown = [&](uint64_t from, uint64_t last) {
    if (!unknown.empty() && spacing.next(unknown.back().last) == from) {
      unknown.back().last = last;
    } else {
      unknown.push_back({{from, last}});
    }
  };
  while (next < limit && records.bytes_fetched() < limits::walk_bytes_enough) {
    const Stored* stored = nullptr;
    ZLOG_TRY(records.seek(next, &stored));
    const uint64_t gap_end =
        header.first_at(stored == nullptr ? limit : std::min(stored->span.first, limit));
    if (next < gap_end && header.lost(next, gap_end)) {
      note_unknown(next, spacing.before(gap_end, 1));
    }
    next = std::max(next, gap_end);
    if (stored == nullptr || next >= limit) break;
    if (spacing.place(next) - spacing.place(first) > kChunkPlacesMax) ZLOG_TRY(flush());
    const uint64_t last = std::min(stored->span.last, spacing.before(header.first_at(limit), 1));
    const Record& record = stored->record;
    if (record.holds_entries()) {
      const uint32_t from = spacing.index(stored->span, next);
      const uint32_t to = spacing.index(stored->span, last) + 1;
      add_places(record, from, to, spacing.index({first, last}, next), &places);
      tags += record.tags.begin_of(to) - record.tags.begin_of(from);
    } else if (record.kind == RecordKind::kLost || record.unreadable()) {
      note_unknown(next, last);
    }
    next = spacing.next(last);
    if (tags >= limits::chunk_tags || unknown.size() + 1 >= limits::chunk_unknown_max) {
      ZLOG_TRY(flush());
    }
  }
  ZLOG_TRY(flush());
  *reached = next;
  return 0;
}

int make_chunks(Object& object, Header* header, uint64_t first) {
  if (!header->tagged) {
    header->tagged = true;
    return make_first_chunks(object, header, first);
  }
  if (header->loose_tags < limits::chunk_tags && header->loose_records < limits::chunk_records) {
    return 0;
  }
  if (first <= header->taken().value_or(0)) return 0;
  uint64_t reached = header->indexed;
  ZLOG_TRY(rebuild_chunks(object, *header, header->indexed, first, &reached));
  const bool all = header->highest && reached > *header->highest;
  header->indexed = reached;
  header->loose_tags = 0;
  header->loose_records = all ? 0 : limits::chunk_records;
  return 0;
}

int add_tags(Object& object, Header* header, const std::vector<uint64_t>& positions,
             const TagsReader& tags, const std::vector<uint32_t>& which) {
  const auto fresh = std::lower_bound(positions.begin(), positions.end(), header->indexed);
  const auto late_count = static_cast<size_t>(fresh - positions.begin());
  uint64_t loose = header->loose_tags;
  for (size_t i = late_count; i < positions.size(); i++) loose += tags.count_of(which[i]);
  header->loose_tags = static_cast<uint32_t>(std::min<uint64_t>(loose, UINT32_MAX));
  if (late_count == 0) return 0;
  std::vector<StoredChunk> chunks, out_of_use;
  ZLOG_TRY(list_chunks(object, *header, positions.front(), positions[late_count - 1] + 1, SIZE_MAX,
                       &chunks, &out_of_use));
  // Another copy of the object, or a later class, would take them for sound.
  for (const StoredChunk& chunk : out_of_use) ZLOG_TRY(remove_chunk(object, *header, chunk));
  const Spacing spacing = header->spacing();
  size_t i = 0;
  uint64_t bytes = 0;
  for (const StoredChunk& chunk : chunks) {
    TagPlaces late;
    bool far = false;
    for (; i < late_count && positions[i] <= chunk.span.last; i++) {
      if (positions[i] < chunk.span.first) continue;
      far = far || spacing.length({chunk.span.first, positions[i]}) > UINT32_MAX;
      TagPlace place;
      place.index = spacing.index(chunk.span, positions[i]);
      for (const std::string_view tag : tags.of(which[i])) {
        std::vector<TagPlace>& all = late[std::string(tag)];
        if (all.empty() || all.back().index != place.index) all.push_back(place);
      }
    }
    if (far) {
      ZLOG_TRY(remove_chunk(object, *header, chunk));
    } else if (!late.empty()) {
      ZLOG_TRY(add_late(object, *header, chunk, late, &bytes));
    }
  }
  return 0;
}

int check_chunks(Object& object, const Header& header, uint64_t begin, uint64_t end,
                 TagsCheckReply* reply) {
  const Spacing spacing = header.spacing();
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
    if (next < chunk.span.first) note(next, spacing.before(chunk.span.first, 1));
    TagPlaces stored, found;
    bool sound = true;
    uint64_t reached = 0;
    ZLOG_TRY(read_all_places(object, chunk, &stored, &sound, &bytes));
    next = std::max(next, chunk.span.first);
    ZLOG_TRY(places_of(object, header, chunk.span, next, &found, &reached, &bytes));
    const bool whole = reached > chunk.span.last;
    next = whole ? spacing.next(chunk.span.last) : reached;
    for (const auto& [tag, places] : found) {
      const auto known = stored.find(tag);
      const auto below = [](const TagPlace& a, const TagPlace& b) { return a.index < b.index; };
      sound = sound && known != stored.end() &&
              std::includes(known->second.begin(), known->second.end(), places.begin(),
                            places.end(), below);
    }
    if (sound && whole) reply->tags += count_of(stored);
    if (!sound) note(chunk.span.first, chunk.span.last);
    if (!whole) {
      reply->end = reached;
      return 0;
    }
  }
  if (next < limit) note(next, spacing.before(limit, 1));
  reply->end = end;
  return 0;
}

Result<TagsCheckReply> tags_check(Object& object, const TagsRequest& request) {
  Header header;
  ZLOG_TRY(Header::load(object, &header));
  ZLOG_TRY(header.admit(request.epoch));
  TagsCheckReply reply;
  reply.end = request.end;
  if (header.tagged) ZLOG_TRY(check_chunks(object, header, request.start, request.end, &reply));
  return reply;
}

Result<TagsRebuildReply> tags_rebuild(Object& object, const TagsRequest& request) {
  Header header;
  ZLOG_TRY(Header::load(object, &header));
  ZLOG_TRY(header.admit(request.epoch));
  uint64_t begin = std::max(request.start, header.trim_point);
  const uint64_t goal = std::min(request.end, header.indexed);
  uint64_t end = goal;
  if (!header.tagged || begin >= end) return TagsRebuildReply{request.end};
  ZLOG_TRY(remove_chunks(object, header, &begin, &end));
  uint64_t reached = end;
  ZLOG_TRY(rebuild_chunks(object, header, begin, end, &reached));
  return TagsRebuildReply{reached < goal ? reached : request.end};
}

}  // namespace zlog::stripe
