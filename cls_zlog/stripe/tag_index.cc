#include "cls_zlog/stripe/tag_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/base/hex.h"
#include "cls_zlog/stripe/layout.h"
#include "cls_zlog/stripe/span_key.h"
#include "cls_zlog/stripe/stripe.h"
#include "cls_zlog/wire/envelope.h"

namespace zlog::stripe {
namespace {

constexpr uint64_t kPageBuckets = 16;  // values fetched by one listing
constexpr uint64_t kPageChunks = 256;
constexpr uint32_t kRemovedMax = 64;            // chunks that one call makes anew
constexpr uint64_t kChunkPlacesMax = 1u << 31;  // of a chunk's places, their `index`

enum class PlaceKind : uint8_t { kInRecord = 0, kStream = 1, kStreamAlone = 2 };

// The places in one bucket of a chunk, as they are stored: tags ascend, and each one's places do.
struct TagBucket {
  uint32_t tag_count = 0;
  std::string_view names;       // of each tag a u8 length, and as many bytes
  wire::Column<uint32_t> ends;  // of each tag's places
  uint32_t count = 0;           // places
  uint64_t since = 0;           // what `ages` are counted from
  wire::Column<uint8_t> kinds;
  wire::Column<uint32_t> indexes;
  uint32_t streamed = 0;  // of the places, those in the bytestream: the columns below are of them
  wire::Column<uint32_t> offsets, bytes, crcs, ages;

  template <typename V>
  void each(V& v) {
    v("tag_count", tag_count, wire::between(1, limits::chunk_tags_max));
    v("names", names);
    v("ends", ends, wire::number_of(tag_count));
    v("count", count, wire::between(1, limits::chunk_tags_max));
    v("since", since);
    v("kinds", kinds, wire::number_of(count));
    v("indexes", indexes, wire::number_of(count));
    v("streamed", streamed, wire::at_most(limits::chunk_tags_max));
    v("offsets", offsets, wire::number_of(streamed));
    v("bytes", bytes, wire::number_of(streamed));
    v("crcs", crcs, wire::number_of(streamed));
    v("ages", ages, wire::number_of(streamed));
  }
};

std::string bucket_key(uint32_t bucket, uint64_t last) {
  return span_key_bound(std::string(kBuckets) + hex(bucket, 2) + '.', last);
}

// Whether a timestamp can be told by an age.
bool is_near(uint64_t timestamp, uint64_t since) { return timestamp - since <= UINT32_MAX; }

// What of a bucket's places is stored.
std::string encode_bucket(const std::string& key, const TagPlaces& places) {
  std::string names, ends, kinds, indexes, offsets, bytes, crcs, ages;
  TagBucket bucket;
  bucket.since = UINT64_MAX;
  for (const auto& [tag, all] : places) {
    for (const TagPlace& place : all) {
      if (place.offset == TagPlace::kInRecord) continue;
      bucket.since = std::min(bucket.since, place.timestamp);
    }
  }
  for (const auto& [tag, all] : places) {
    bucket.tag_count++;
    names += static_cast<char>(tag.size());
    names.append(tag);
    for (const TagPlace& place : all) {
      bucket.count++;
      wire::append(&indexes, place.index);
      const bool streamed =
          place.offset != TagPlace::kInRecord && is_near(place.timestamp, bucket.since);
      PlaceKind kind = place.alone ? PlaceKind::kStreamAlone : PlaceKind::kStream;
      if (!streamed) kind = PlaceKind::kInRecord;
      wire::append(&kinds, static_cast<uint8_t>(kind));
      if (!streamed) continue;
      bucket.streamed++;
      wire::append(&offsets, place.offset);
      wire::append(&bytes, place.bytes);
      wire::append(&crcs, place.crc);
      wire::append(&ages, static_cast<uint32_t>(place.timestamp - bucket.since));
    }
    wire::append(&ends, bucket.count);
  }
  if (bucket.streamed == 0) bucket.since = 0;
  bucket.names = names;
  bucket.ends = {ends.data(), bucket.tag_count};
  bucket.kinds = {kinds.data(), bucket.count};
  bucket.indexes = {indexes.data(), bucket.count};
  bucket.offsets = {offsets.data(), bucket.streamed};
  bucket.bytes = {bytes.data(), bucket.streamed};
  bucket.crcs = {crcs.data(), bucket.streamed};
  bucket.ages = {ages.data(), bucket.streamed};
  return to_stored(key, bucket);
}

// Takes a stored bucket's places of the tags that `wants(tag)`. False: it is damaged, or of a later
// version.
template <typename Wants>
bool decode_bucket(const std::string& key, std::string_view value, const Wants& wants,
                   TagPlaces* out) {
  TagBucket bucket;
  if (from_stored(key, value, &bucket).code != 0) return false;
  std::string_view names = bucket.names;
  uint32_t streamed = 0;
  uint32_t at = 0;
  for (uint32_t tag = 0; tag < bucket.tag_count; tag++) {
    const size_t size = names.empty() ? 0 : static_cast<uint8_t>(names[0]);
    const uint32_t end = bucket.ends[tag];
    if (size >= names.size() || end < at || end > bucket.count) return false;
    std::vector<TagPlace>* const places =
        wants(names.substr(1, size)) ? &(*out)[std::string(names.substr(1, size))] : nullptr;
    names.remove_prefix(1 + size);
    for (; at < end; at++) {
      const auto kind = static_cast<PlaceKind>(bucket.kinds[at]);
      const bool in_stream = kind != PlaceKind::kInRecord;
      if (in_stream && streamed == bucket.streamed) return false;
      if (places != nullptr) {
        TagPlace place;
        place.index = bucket.indexes[at];
        if (in_stream) {
          place.offset = bucket.offsets[streamed];
          place.bytes = bucket.bytes[streamed];
          if (place.bytes > limits::entry_bytes_max) return false;
          place.crc = bucket.crcs[streamed];
          place.timestamp = bucket.since + bucket.ages[streamed];
          place.alone = kind == PlaceKind::kStreamAlone;
        }
        places->push_back(place);
      }
      if (in_stream) streamed++;
    }
  }
  return names.empty() && at == bucket.count && streamed == bucket.streamed;
}

int put_bucket(Object& object, uint32_t bucket, uint64_t last, const TagPlaces& places) {
  const std::string key = bucket_key(bucket, last);
  return object.omap_set(key, encode_bucket(key, places));
}

int put_chunk(Object& object, const Header& header, const Span& span, const TagChunk& chunk) {
  const std::string key = span_key(kChunks, span, header.spacing());
  return object.omap_set(key, to_stored(key, chunk));
}

// Stores a chunk with these places.
int store_chunk(Object& object, const Header& header, const Span& span, const TagPlaces& places,
                const std::vector<Hole>& unknown) {
  TagChunk chunk;
  chunk.unknown = unknown;
  std::map<uint32_t, TagPlaces> buckets;
  for (const auto& [tag, all] : places) {
    chunk.tags += static_cast<uint32_t>(all.size());
    buckets[bucket_of(tag)][tag] = all;
  }
  for (const auto& [bucket, some] : buckets) {
    chunk.buckets |= uint64_t{1} << bucket;
    ZLOG_TRY(put_bucket(object, bucket, span.last, some));
  }
  return put_chunk(object, header, span, chunk);
}

// Removes a chunk: what it was about is looked through from then on.
int remove_chunk(Object& object, const Header& header, const StoredChunk& stored) {
  for (uint32_t bucket = 0; bucket < kBucketCount; bucket++) {
    if ((stored.chunk.buckets >> bucket & 1) == 0) continue;
    ZLOG_TRY(object.omap_remove(bucket_key(bucket, stored.span.last)));
  }
  return object.omap_remove(span_key(kChunks, stored.span, header.spacing()));
}

// What a chunk is taken for that can't be read.
TagChunk all_buckets() {
  TagChunk chunk;
  chunk.buckets = UINT64_MAX;
  return chunk;
}

// All places of a chunk, as they are stored.
int read_all_places(Object& object, const StoredChunk& chunk, TagPlaces* out, bool* sound,
                    uint64_t* bytes) {
  for (uint32_t bucket = 0; bucket < kBucketCount; bucket++) {
    if ((chunk.chunk.buckets >> bucket & 1) == 0) continue;
    const std::string key = bucket_key(bucket, chunk.span.last);
    std::string value;
    const int r = object.omap_get(key, &value);
    if (r < 0 && r != -ENOENT) return r;
    *bytes += value.size();
    const auto all = [](std::string_view) { return true; };
    *sound = *sound && r == 0 && decode_bucket(key, value, all, out);
  }
  return 0;
}

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

uint32_t count_of(const TagPlaces& places) {
  size_t count = 0;
  for (const auto& [tag, all] : places) count += all.size();
  return static_cast<uint32_t>(count);
}

// Adds late entries' places, which ask the record, to a chunk.
int add_late(Object& object, const Header& header, StoredChunk stored, const TagPlaces& late,
             uint64_t* bytes) {
  std::map<uint32_t, TagPlaces> buckets;
  for (const auto& [tag, all] : late) buckets[bucket_of(tag)][tag] = all;
  stored.chunk.tags += count_of(late);
  bool sound = stored.chunk.tags <= limits::chunk_tags_max;
  for (auto& [bucket, some] : buckets) {
    TagPlaces all;
    if (sound && (stored.chunk.buckets >> bucket & 1) != 0) {
      const std::string key = bucket_key(bucket, stored.span.last);
      std::string value;
      const int r = object.omap_get(key, &value);
      if (r < 0 && r != -ENOENT) return r;
      *bytes += value.size();
      if (*bytes > limits::walk_bytes_max) return -E2BIG;
      sound = r == 0 && decode_bucket(key, value, [](std::string_view) { return true; }, &all);
    }
    for (auto& [tag, places] : some) {
      std::vector<TagPlace>& merged = all[tag];
      merged.insert(merged.end(), places.begin(), places.end());
      const auto below = [](const TagPlace& a, const TagPlace& b) { return a.index < b.index; };
      std::sort(merged.begin(), merged.end(), below);
    }
    some = std::move(all);
  }
  if (!sound) return remove_chunk(object, header, stored);
  for (const auto& [bucket, all] : buckets) {
    stored.chunk.buckets |= uint64_t{1} << bucket;
    ZLOG_TRY(put_bucket(object, bucket, stored.span.last, all));
  }
  return put_chunk(object, header, stored.span, stored.chunk);
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

uint32_t bucket_of(std::string_view tag) { return crc32c(tag) % kBucketCount; }

int list_chunks(Object& object, const Header& header, uint64_t begin, uint64_t end,
                size_t count_max, std::vector<StoredChunk>* out) {
  std::string after = span_key_bound(kChunks, begin);
  for (bool more = true; more;) {
    Page page;
    ZLOG_TRY(object.omap_list(after, std::string(kChunks), kPageChunks, &page, &more));
    if (page.empty() && more) return -EIO;
    for (const auto& [key, value] : page) {
      after = key;
      StoredChunk stored;
      if (!parse_span_key(kChunks, key, header.spacing(), header.residue, &stored.span)) continue;
      if (stored.span.first >= end || out->size() == count_max) return 0;
      if (!out->empty() && stored.span.first <= out->back().span.last) continue;
      if (from_stored(key, value.bytes, &stored.chunk).code == 0) out->push_back(stored);
    }
  }
  return 0;
}

int read_places(Object& object, const StoredChunk& chunk, const std::vector<std::string>& tags,
                TagPlaces* out, bool* sound) {
  for (uint32_t bucket = 0; bucket < kBucketCount; bucket++) {
    const auto wants = [&](std::string_view tag) {
      return bucket_of(tag) == bucket && std::find(tags.begin(), tags.end(), tag) != tags.end();
    };
    if ((chunk.chunk.buckets >> bucket & 1) == 0 || std::none_of(tags.begin(), tags.end(), wants)) {
      continue;
    }
    const std::string key = bucket_key(bucket, chunk.span.last);
    std::string value;
    const int r = object.omap_get(key, &value);
    if (r < 0 && r != -ENOENT) return r;
    *sound = *sound && r == 0 && decode_bucket(key, value, wants, out);
  }
  return 0;
}

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
  std::vector<StoredChunk> chunks;
  ZLOG_TRY(list_chunks(object, *header, positions.front(), positions[late_count - 1] + 1, SIZE_MAX,
                       &chunks));
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

int remove_chunks(Object& object, const Header& header, uint64_t* begin, uint64_t* end) {
  std::string after = span_key_bound(kChunks, *begin);
  uint32_t removed = 0;
  for (bool more = true; more;) {
    Page page;
    ZLOG_TRY(object.omap_list(after, std::string(kChunks), kPageChunks, &page, &more));
    if (page.empty() && more) return -EIO;
    for (const auto& [key, value] : page) {
      after = key;
      Span span;
      if (!parse_span_key(kChunks, key, header.spacing(), header.residue, &span)) {
        ZLOG_TRY(object.omap_remove(key));
        continue;
      }
      if (span.first >= *end) return 0;
      if (removed++ == kRemovedMax) {
        *end = std::min(*end, span.first);
        return 0;
      }
      ZLOG_TRY(remove_chunk(object, header, {span, all_buckets()}));
      *begin = std::min(*begin, span.first);
      *end = std::max(*end, span.last + 1);
    }
  }
  return 0;
}

int forget_chunks(Object& object, Header* header) {
  if (!header->tagged) return 0;
  header->indexed = std::max(header->indexed, header->trim_point);
  Page page;
  bool more = false;
  ZLOG_TRY(object.omap_list("", std::string(kChunks), 1, &page, &more));
  const std::string bound = span_key_bound(kChunks, header->trim_point);
  if (page.empty() || page.begin()->first >= bound) return 0;
  ZLOG_TRY(object.omap_remove_range(std::string(kChunks), bound));
  for (uint32_t bucket = 0; bucket < kBucketCount; bucket++) {
    ZLOG_TRY(
        object.omap_remove_range(bucket_key(bucket, 0), bucket_key(bucket, header->trim_point)));
  }
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
