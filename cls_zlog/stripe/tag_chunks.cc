#include "cls_zlog/stripe/tag_chunks.h"

#include <algorithm>
#include <utility>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/base/hex.h"
#include "cls_zlog/stripe/span_key.h"
#include "cls_zlog/wire/envelope.h"

namespace zlog::stripe {
namespace {

constexpr uint64_t kPageChunks = 256;
constexpr uint32_t kRemovedMax = 64;  // chunks that one call makes anew

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

// What a chunk is taken for that can't be read.
TagChunk all_buckets() {
  TagChunk chunk;
  chunk.buckets = UINT64_MAX;
  return chunk;
}

}  // namespace

uint32_t bucket_of(std::string_view tag) { return crc32c(tag) % kBucketCount; }

uint32_t count_of(const TagPlaces& places) {
  size_t count = 0;
  for (const auto& [tag, all] : places) count += all.size();
  return static_cast<uint32_t>(count);
}

int list_chunks(Object& object, const Header& header, uint64_t begin, uint64_t end,
                size_t count_max, std::vector<StoredChunk>* out,
                std::vector<StoredChunk>* out_of_use) {
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
      if (from_stored(key, value.bytes, &stored.chunk).code == 0) {
        out->push_back(stored);
      } else if (out_of_use != nullptr) {
        out_of_use->push_back({stored.span, all_buckets()});
      }
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

int put_chunk(Object& object, const Header& header, const Span& span, const TagChunk& chunk) {
  const std::string key = span_key(kChunks, span, header.spacing());
  return object.omap_set(key, to_stored(key, chunk));
}

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

int remove_chunk(Object& object, const Header& header, const StoredChunk& stored) {
  for (uint32_t bucket = 0; bucket < kBucketCount; bucket++) {
    if ((stored.chunk.buckets >> bucket & 1) == 0) continue;
    ZLOG_TRY(object.omap_remove(bucket_key(bucket, stored.span.last)));
  }
  return object.omap_remove(span_key(kChunks, stored.span, header.spacing()));
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

}  // namespace zlog::stripe
