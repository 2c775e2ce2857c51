#include "cls_zlog/stripe/tag_chunks.h"

#include <algorithm>
#include <set>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/base/hex.h"
#include "cls_zlog/stripe/layout.h"
#include "cls_zlog/stripe/tag_filters.h"
#include "cls_zlog/wire/envelope.h"

namespace zlog::stripe {
namespace {

constexpr uint32_t kRemovedMax = 64;  // chunks that one call rebuilds
// Below this average length of records and holes, their ends are not stored: small records are found
// by a listing almost as fast, and each search reads all chunks.
constexpr uint32_t kPartLengthMin = 16;

enum class LocationKind : uint8_t { kInRecord = 0, kStream = 1, kStreamAlone = 2 };

// A stored bucket; tags and their locations ascend.
struct TagBucket {
  uint32_t tag_count = 0;
  std::string_view names;       // as in Tags
  wire::Column<uint32_t> ends;  // of each tag's locations
  uint32_t count = 0;           // locations
  uint64_t since = 0;           // timestamp with age 0
  wire::Column<uint8_t> kinds;
  wire::Column<uint32_t> indexes;
  uint32_t streamed = 0;  // locations in the bytestream; the following columns are about these
  wire::Column<uint32_t> offsets, bytes, crcs, ages;

  ZLOG_FIELDS(v) {
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

// Whether a timestamp has an age.
bool is_near(uint64_t timestamp, uint64_t since) { return timestamp - since <= UINT32_MAX; }

std::string encode_bucket(const std::string& key, const TagLocations& locations) {
  std::string names, ends, kinds, indexes, offsets, bytes, crcs, ages;
  TagBucket bucket;
  bucket.since = UINT64_MAX;
  for (const auto& [tag, all] : locations) {
    for (const TagLocation& location : all) {
      if (location.offset == TagLocation::kInRecord) continue;
      bucket.since = std::min(bucket.since, location.timestamp);
    }
  }
  for (const auto& [tag, all] : locations) {
    bucket.tag_count++;
    append_name(tag, &names);
    for (const TagLocation& location : all) {
      bucket.count++;
      wire::append(&indexes, location.index);
      const bool streamed =
          location.offset != TagLocation::kInRecord && is_near(location.timestamp, bucket.since);
      LocationKind kind = location.alone ? LocationKind::kStreamAlone : LocationKind::kStream;
      if (!streamed) kind = LocationKind::kInRecord;
      wire::append(&kinds, static_cast<uint8_t>(kind));
      if (!streamed) continue;
      bucket.streamed++;
      wire::append(&offsets, location.offset);
      wire::append(&bytes, location.bytes);
      wire::append(&crcs, location.crc);
      wire::append(&ages, static_cast<uint32_t>(location.timestamp - bucket.since));
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

// Adds the locations in a stored bucket for the tags that wants(tag) accepts. Returns false if the
// bucket is damaged or of a later version.
template <typename Wants>
bool decode_bucket(const std::string& key, std::string_view value, const Wants& wants,
                   TagLocations* out) {
  TagBucket bucket;
  if (from_stored(key, value, &bucket).code != 0) return false;
  uint32_t tag = 0;
  uint32_t streamed = 0;
  uint32_t at = 0;
  const auto take = [&](std::string_view name) {
    if (tag == bucket.tag_count) return false;
    const uint32_t end = bucket.ends[tag++];
    if (end < at || end > bucket.count) return false;
    std::vector<TagLocation>* const locations = wants(name) ? &(*out)[std::string(name)] : nullptr;
    for (; at < end; at++) {
      TagLocation location;
      location.index = bucket.indexes[at];
      const auto kind = static_cast<LocationKind>(bucket.kinds[at]);
      if (kind != LocationKind::kInRecord) {
        if (streamed == bucket.streamed) return false;
        location.offset = bucket.offsets[streamed];
        location.bytes = bucket.bytes[streamed];
        location.crc = bucket.crcs[streamed];
        location.timestamp = bucket.since + bucket.ages[streamed++];
        location.alone = kind == LocationKind::kStreamAlone;
        if (location.bytes > limits::entry_bytes_max) return false;
      }
      if (locations != nullptr) locations->push_back(location);
    }
    return true;
  };
  return each_name(bucket.names, take) && tag == bucket.tag_count && at == bucket.count &&
         streamed == bucket.streamed;
}

uint32_t bucket_of(std::string_view tag) { return crc32c(tag) % kBucketCount; }

// Like read_locations(), for one bucket.
template <typename Wants>
int read_bucket(Object& object, const StoredChunk& chunk, uint32_t bucket, const Wants& wants,
                TagLocations* out, bool* sound, uint64_t* bytes) {
  if ((chunk.chunk.buckets >> bucket & 1) == 0) return 0;
  const std::string key = bucket_key(bucket, chunk.span.last);
  std::string value;
  const int r = object.omap_get(key, &value);
  if (r < 0 && r != -ENOENT) return r;
  *bytes += value.size();
  *sound = *sound && r == 0 && decode_bucket(key, value, wants, out);
  return 0;
}

// Stands for a chunk that can't be read.
TagChunk all_buckets() {
  TagChunk chunk;
  chunk.buckets = UINT64_MAX;
  return chunk;
}

}  // namespace

std::vector<Segment> segments_of(const Header& header, uint64_t start, uint64_t end,
                                 const std::vector<StoredChunk>& chunks,
                                 const std::vector<Span>& absent) {
  std::vector<Segment> segments;
  uint64_t at = start;
  auto skip = absent.begin();
  const auto add = [&](uint64_t to, const StoredChunk* chunk) {
    to = std::min(to, end);
    while (at < to) {
      while (skip != absent.end() && skip->last < at) ++skip;
      const bool some = skip != absent.end() && skip->first < to;
      const bool skipped = some && skip->first <= at;
      const uint64_t next = skipped ? skip->last + 1 : some ? skip->first : to;
      segments.push_back({at, std::min(next, to), chunk, skipped});
      at = segments.back().end;
    }
  };
  for (const StoredChunk& chunk : chunks) {
    std::vector<Span> doubtful(chunk.chunk.unknown.begin(), chunk.chunk.unknown.end());
    doubtful.insert(doubtful.end(), header.holes.runs.begin(), header.holes.runs.end());
    doubtful.push_back({header.holes.accounted, limits::position_max});
    std::sort(doubtful.begin(), doubtful.end(),
              [](const Span& a, const Span& b) { return a.first < b.first; });
    const uint64_t chunk_end = chunk.span.last + 1;
    add(chunk.span.first, nullptr);
    for (const Span& span : doubtful) {
      add(std::min(span.first, chunk_end), &chunk);
      add(std::min(span.last + 1, chunk_end), nullptr);
    }
    add(chunk_end, &chunk);
  }
  add(end, nullptr);
  return segments;
}

uint32_t count_of(const TagLocations& locations) {
  size_t count = 0;
  for (const auto& [tag, all] : locations) count += all.size();
  return static_cast<uint32_t>(count);
}

int list_chunks(Object& object, const Header& header, uint64_t begin, uint64_t end,
                size_t count_max, std::vector<StoredChunk>* out,
                std::vector<StoredChunk>* out_of_use) {
  const auto list = [&](const std::string& key, std::string_view value, const Span* span,
                        bool* more) {
    if (span == nullptr) return 0;
    *more = span->first < end && out->size() < count_max;
    if (!*more || (!out->empty() && span->first <= out->back().span.last)) return 0;
    StoredChunk stored = {*span, {}};
    if (from_stored(key, value, &stored.chunk).code == 0) {
      out->push_back(stored);
    } else if (out_of_use != nullptr) {
      out_of_use->push_back({*span, all_buckets()});
    }
    return 0;
  };
  return each_span(object, header, std::string(kChunks), begin, list);
}

int read_locations(Object& object, const StoredChunk& chunk, const std::vector<std::string>* tags,
                   TagLocations* out, bool* sound, uint64_t* bytes) {
  std::set<std::string_view> wanted;
  uint64_t buckets = tags == nullptr ? UINT64_MAX : 0;
  if (tags != nullptr) wanted.insert(tags->begin(), tags->end());
  for (const std::string_view tag : wanted) buckets |= uint64_t{1} << bucket_of(tag);
  for (uint32_t bucket = 0; bucket < kBucketCount; bucket++) {
    if ((buckets >> bucket & 1) == 0) continue;
    const auto wants = [&](std::string_view tag) {
      return tags == nullptr || (bucket_of(tag) == bucket && wanted.count(tag) != 0);
    };
    ZLOG_TRY(read_bucket(object, chunk, bucket, wants, out, sound, bytes));
  }
  return 0;
}

std::string record_key(const StoredChunk& chunk, uint32_t index, const Striping& striping,
                       Span* record) {
  const auto count = static_cast<uint32_t>(chunk.chunk.record_ends.size() / sizeof(uint32_t));
  const wire::Column<uint32_t> ends = {chunk.chunk.record_ends.data(), count};
  uint32_t i = 0;
  for (uint32_t limit = count; i < limit;) {
    const uint32_t middle = i + (limit - i) / 2;
    if (ends[middle] <= index) {
      i = middle + 1;
    } else {
      limit = middle;
    }
  }
  const uint32_t begin = i == 0 ? 0 : ends[i - 1];
  if (i == count || begin > index) return {};
  const uint64_t first = striping.after(chunk.span.first, begin);
  *record = {first, striping.after(first, ends[i] - begin - 1)};
  return span_key(kRecords, *record, striping);
}

int store_chunk(Object& object, const Header& header, const Span& span,
                const TagLocations& locations, const std::vector<SpanMessage>& unknown,
                const std::vector<uint32_t>& ends) {
  StoredChunk stored = {span, {}};
  stored.chunk.unknown = unknown;
  const uint64_t positions = header.striping().length(span);
  if (ends.size() <= std::min<uint64_t>(limits::chunk_ends_max, positions / kPartLengthMin)) {
    for (const uint32_t end : ends) wire::append(&stored.chunk.record_ends, end);
  }
  uint64_t bytes = 0;
  return add_to_chunk(object, header, stored, locations, &bytes);
}

int add_to_chunk(Object& object, const Header& header, StoredChunk stored,
                 const TagLocations& locations, uint64_t* bytes) {
  std::map<uint32_t, TagLocations> buckets;
  for (const auto& [tag, all] : locations) buckets[bucket_of(tag)][tag] = all;
  stored.chunk.tags += count_of(locations);
  bool sound = stored.chunk.tags <= limits::chunk_tags_max;
  for (auto& [bucket, added] : buckets) {
    TagLocations old;
    const auto all = [](std::string_view) { return true; };
    if (sound) ZLOG_TRY(read_bucket(object, stored, bucket, all, &old, &sound, bytes));
    if (*bytes > limits::walk_bytes_max) return -E2BIG;
    for (auto& [tag, before] : old) {
      std::vector<TagLocation>& merged = added[tag];
      merged.insert(merged.begin(), before.begin(), before.end());
      std::sort(merged.begin(), merged.end());
    }
  }
  if (!sound) return remove_chunk(object, header, stored);
  for (const auto& [bucket, all] : buckets) {
    stored.chunk.buckets |= uint64_t{1} << bucket;
    const std::string key = bucket_key(bucket, stored.span.last);
    ZLOG_TRY(object.omap_set(key, encode_bucket(key, all)));
  }
  const std::string key = span_key(kChunks, stored.span, header.striping());
  return object.omap_set(key, to_stored(key, stored.chunk));
}

int remove_chunk(Object& object, const Header& header, const StoredChunk& stored) {
  for (uint32_t bucket = 0; bucket < kBucketCount; bucket++) {
    if ((stored.chunk.buckets >> bucket & 1) == 0) continue;
    ZLOG_TRY(object.omap_remove(bucket_key(bucket, stored.span.last)));
  }
  return object.omap_remove(span_key(kChunks, stored.span, header.striping()));
}

int remove_chunks(Object& object, const Header& header, uint64_t* begin, uint64_t* end) {
  uint32_t removed = 0;
  const auto remove = [&](const std::string& key, std::string_view, const Span* span, bool* more) {
    if (span == nullptr) return object.omap_remove(key);
    *more = span->first < *end && removed++ < kRemovedMax;
    if (!*more) {
      *end = std::min(*end, span->first);
      return 0;
    }
    *begin = std::min(*begin, span->first);
    *end = std::max(*end, span->last + 1);
    return remove_chunk(object, header, {*span, all_buckets()});
  };
  return each_span(object, header, std::string(kChunks), *begin, remove);
}

int forget_chunks(Object& object, Header* header) {
  if (!header->tagged) return 0;
  header->indexed = std::max(header->indexed, header->trim_point);
  ZLOG_TRY(forget_filters(object, *header));
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

}  // namespace zlog::stripe
