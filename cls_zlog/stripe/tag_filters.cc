#include "cls_zlog/stripe/tag_filters.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/base/hex.h"
#include "cls_zlog/stripe/layout.h"
#include "cls_zlog/stripe/span_key.h"
#include "cls_zlog/wire/envelope.h"

namespace zlog::stripe {
namespace {

// A large filter is divided into parts by the hashes. Other filters have one part with all hashes.
constexpr uint32_t kParts = 64;
constexpr uint32_t kWhole = kParts;

constexpr size_t kWantedMax = 1024;  // tags that are looked up in each filter
constexpr uint64_t kBytesMax = 8u << 20;

struct TagFilter {
  uint32_t count = 0;
  wire::Column<uint32_t> hashes;  // ascending

  ZLOG_FIELDS(v) {
    v("count", count, wire::at_most(limits::chunk_tags_max));
    v("hashes", hashes, wire::number_of(count));
  }

  bool has(uint32_t hash) const {
    uint32_t begin = 0;
    for (uint32_t end = count; begin < end;) {
      const uint32_t middle = begin + (end - begin) / 2;
      if (hashes[middle] < hash) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin < count && hashes[begin] == hash;
  }
};

std::string prefix_of(uint32_t part) { return std::string(kFilters) + hex(part, 2) + '.'; }

void sort_hashes(std::vector<uint32_t>* hashes) {
  std::sort(hashes->begin(), hashes->end());
  hashes->erase(std::unique(hashes->begin(), hashes->end()), hashes->end());
}

int store_part(Object& object, const Header& header, uint32_t part, const Span& span,
               const std::vector<uint32_t>& hashes) {
  std::string column;
  for (const uint32_t hash : hashes) wire::append(&column, hash);
  TagFilter filter;
  filter.count = static_cast<uint32_t>(hashes.size());
  filter.hashes = {column.data(), filter.count};
  const std::string key = span_key(prefix_of(part), span, header.striping());
  return object.omap_set(key, to_stored(key, filter));
}

// Returns whether an entry may still be stored at one of the positions, which can only be if the
// header had to join holes.
bool doubtful(const Header& header, const Span& span) {
  const auto overlaps = [&](const Span& hole) {
    return hole.first <= span.last && hole.last >= span.first;
  };
  return span.last >= header.holes.accounted ||
         std::any_of(header.holes.runs.begin(), header.holes.runs.end(), overlaps);
}

// Returns the last positions of [begin, end) without a filter. Leaves out a few at the end, and
// prefers positions without a chunk to those below, because they are searched most slowly.
std::optional<Span> find_gap(const Header& header, uint64_t begin, uint64_t end,
                             const std::vector<Span>& known) {
  const uint64_t least = filter_positions_min(header);
  std::optional<Span> gap;
  for (const Span& span : known) {
    if (begin < span.first) gap = {begin, span.first - 1};
    begin = std::max(begin, span.last + 1);
  }
  if (end_of(begin, least) <= header.indexed && end_of(header.indexed, least) <= end) {
    begin = header.indexed;
  }
  return end_of(begin, least) <= end ? Span{begin, end - 1} : gap;
}

// Hashes the tags of the first records of a range. Sets `span` to their positions. It ends before a
// position that is unwritten or cannot be read.
int hash_tags(Object& object, const Header& header, Span* span, std::vector<uint32_t>* hashes) {
  Sweep sweep(object, header, std::max(span->first, header.trim_point), span->last + 1);
  span->first = sweep.position();
  uint32_t records = 0;
  while (!sweep.done() && sweep.bytes_fetched() < limits::page_bytes_max &&
         hashes->size() < limits::filter_hashes && records++ < limits::chunk_records) {
    Sweep::Part part;
    ZLOG_TRY(sweep.next(&part));
    const Record* const record = part.stored == nullptr ? nullptr : &part.stored->record;
    if (record == nullptr || record->kind == RecordKind::kLost || record->unreadable()) {
      if (span->first < part.first) {
        span->last = part.first - 1;
        return 0;
      }
      span->first = sweep.position();
      continue;
    }
    each_name(record->tags.names, [&](std::string_view name) {
      hashes->push_back(crc32c(name));
      return true;
    });
  }
  span->last = sweep.position() - 1;
  return 0;
}

// Merges filters right below a new one into it, as long as they are at most twice as large. So most
// appends rewrite few hashes, and there are few filters. Removes damaged filters.
int merge_below(Object& object, const Header& header, Span* span, std::vector<uint32_t>* hashes) {
  std::vector<std::pair<Span, std::vector<uint32_t>>> filters;
  const auto list = [&](const std::string& key, std::string_view value, const Span* each,
                        bool* more) {
    TagFilter filter;
    const Failure failure = each == nullptr ? Failure{-EIO} : from_stored(key, value, &filter);
    if (failure.code == -EIO) return object.omap_remove(key);
    *more = each->last < span->first;
    if (!*more || failure.code != 0) return 0;
    std::vector<uint32_t>& copy = filters.emplace_back(*each, filter.count).second;
    for (uint32_t i = 0; i < filter.count; i++) copy[i] = filter.hashes[i];
    return 0;
  };
  ZLOG_TRY(each_span(object, header, prefix_of(kWhole), 0, list));
  for (; !filters.empty(); filters.pop_back()) {
    const auto& [below, its] = filters.back();
    if (below.last + 1 != span->first || its.size() / 2 > hashes->size()) break;
    hashes->insert(hashes->end(), its.begin(), its.end());
    sort_hashes(hashes);
    span->first = below.first;
    ZLOG_TRY(object.omap_remove(span_key(prefix_of(kWhole), below, header.striping())));
  }
  return 0;
}

}  // namespace

uint64_t filter_positions_min(const Header& header) {
  const uint64_t entries_each = header.entries / std::max<uint64_t>(header.records, 1);
  return std::max<uint64_t>(limits::filter_positions_min,
                            limits::filter_records_min * entries_each);
}

int look_up_filters(Object& object, const Header& header, uint64_t begin, uint64_t end,
                    const TagSets& sets, Filtered* out) {
  std::vector<std::vector<uint32_t>> hashes;  // of each set
  std::set<uint32_t> wanted, parts;
  for (const std::vector<std::string_view>& tags : sets) {
    hashes.emplace_back();
    for (const std::string_view tag : tags) hashes.back().push_back(crc32c(tag));
    wanted.insert(hashes.back().begin(), hashes.back().end());
  }
  if (wanted.size() > kWantedMax) return 0;
  for (const uint32_t hash : wanted) parts.insert(hash % kParts);
  // By last and first position: the wanted hashes that are not in the filter.
  std::map<std::pair<uint64_t, uint64_t>, std::set<uint32_t>> missing;
  bool any = true;
  uint64_t bytes = 0;
  const auto read = [&](uint32_t part) {
    any = part == kWhole;
    const auto use = [&](const std::string& key, std::string_view value, const Span* span,
                         bool* more) {
      *more = span == nullptr || span->first < end;
      any = any || *more;
      bytes += value.size();
      *more = *more && bytes < kBytesMax;
      TagFilter filter;
      if (!*more || span == nullptr || doubtful(header, *span)) return 0;
      if (from_stored(key, value, &filter).code != 0) return 0;
      std::set<uint32_t>& absent = missing[{span->last, span->first}];
      for (const uint32_t hash : wanted) {
        if ((part == kWhole || hash % kParts == part) && !filter.has(hash)) absent.insert(hash);
      }
      return 0;
    };
    return each_span(object, header, prefix_of(part), begin, use);
  };
  ZLOG_TRY(read(kWhole));
  for (const uint32_t part : parts) {
    if (!any || bytes >= kBytesMax) break;  // if one part has no key, no filter is divided
    ZLOG_TRY(read(part));
  }
  out->complete = bytes < kBytesMax;
  for (const auto& [span, absent] : missing) {
    out->known.push_back({span.second, span.first});
    const auto lacks = [&, &absent = absent](uint32_t hash) { return absent.count(hash) != 0; };
    const auto cannot_match = [&](const std::vector<uint32_t>& tags) {
      return std::any_of(tags.begin(), tags.end(), lacks);
    };
    if (std::all_of(hashes.begin(), hashes.end(), cannot_match)) {
      out->absent.push_back(out->known.back());
    }
  }
  return 0;
}

int add_filter(Object& object, const Header& header, uint64_t begin, uint64_t end,
               const std::vector<Span>& known) {
  const std::optional<Span> gap = find_gap(header, begin, end, known);
  if (!gap) return 0;
  Span span = *gap;
  std::vector<uint32_t> hashes;
  ZLOG_TRY(hash_tags(object, header, &span, &hashes));
  if (span.first > span.last) return 0;
  sort_hashes(&hashes);
  ZLOG_TRY(merge_below(object, header, &span, &hashes));
  if (hashes.size() < limits::filter_hashes) {
    return store_part(object, header, kWhole, span, hashes);
  }
  std::vector<std::vector<uint32_t>> parts(kParts);
  for (const uint32_t hash : hashes) parts[hash % kParts].push_back(hash);
  for (uint32_t part = 0; part < kParts; part++) {
    ZLOG_TRY(store_part(object, header, part, span, parts[part]));
  }
  return 0;
}

int forget_filters(Object& object, const Header& header) {
  if (header.appenders.empty()) return 0;
  for (uint32_t part : {0u, kWhole}) {
    Page page;
    bool more = false;
    ZLOG_TRY(object.omap_list("", prefix_of(part), 1, &page, &more));
    const std::string bound = span_key_bound(prefix_of(part), header.trim_point);
    if (page.empty() || page.begin()->first >= bound) continue;
    for (const uint32_t end = part == kWhole ? kWhole + 1 : kParts; part < end; part++) {
      const std::string prefix = prefix_of(part);
      ZLOG_TRY(object.omap_remove_range(prefix, span_key_bound(prefix, header.trim_point)));
    }
  }
  return 0;
}

}  // namespace zlog::stripe
