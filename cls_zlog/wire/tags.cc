#include "cls_zlog/wire/tags.h"

#include <algorithm>
#include <numeric>

namespace zlog {
namespace {

constexpr size_t kLikelyNameBytes = 8;
constexpr size_t kNamesLookedUp = 4;  // for more, a table of all names costs less

}  // namespace

bool valid_tag(std::string_view tag) { return !tag.empty() && tag.size() <= limits::tag_bytes_max; }

void append_name(std::string_view name, std::string* out) {
  *out += static_cast<char>(name.size());
  out->append(name);
}

uint32_t Tags::begin_of(uint32_t i) const {
  uint32_t begin = 0;
  if (counts.size() == 0) return begin;
  for (const char count : counts.bytes(0, i)) begin += static_cast<uint8_t>(count);
  return begin;
}

bool Tags::valid(uint32_t count) const {
  if (counts.size() != (any() ? count : 0) || ids.size() != total()) return false;
  uint32_t named = 0;
  const auto counted = [&named](std::string_view name) {
    named++;
    return valid_tag(name);
  };
  // Names without an entry would be stored with each record of the write.
  if (!each_name(names, counted) || named > ids.size()) return false;
  uint32_t most_tags = 0;
  for (const char each : counts.bytes()) {
    most_tags = std::max<uint32_t>(most_tags, static_cast<uint8_t>(each));
  }
  uint32_t most = 0;
  for (uint32_t at = 0; at < ids.size(); at++) most = std::max(most, ids[at]);
  if (most_tags > limits::entry_tags_max || (ids.size() > 0 && most >= named)) return false;
  if (most_tags <= 1) return true;
  uint32_t at = 0;
  for (uint32_t i = 0; i < counts.size(); i++) {
    const uint32_t begin = at;
    for (const uint32_t end = at + counts[i]; at < end; at++) {
      if (at > begin && ids[at] <= ids[at - 1]) return false;
    }
  }
  return true;
}

TagsReader::TagsReader(const Tags& tags) : tags_(tags), begins_(tags.counts.size() + 1) {
  const std::string_view counts = tags.counts.bytes();
  uint32_t begin = 0;
  uint32_t* out = begins_.data();
  *out++ = 0;
  for (const char count : counts) *out++ = begin += static_cast<uint8_t>(count);
}

const std::vector<std::string_view>& TagsReader::names() const {
  if (!names_.empty()) return names_;
  names_.reserve(tags_.names.size() / kLikelyNameBytes);
  each_name(tags_.names, [this](std::string_view name) {
    names_.push_back(name);
    return true;
  });
  return names_;
}

std::string_view TagsReader::name(uint32_t id) const {
  if (names_.empty() && ++looked_up_ > kNamesLookedUp) names();
  if (!names_.empty()) return names_[id];
  std::string_view found;
  each_name(tags_.names, [&](std::string_view name) {
    found = name;
    return id-- > 0;
  });
  return found;
}

std::vector<std::string_view> TagsReader::of(uint32_t i) const {
  std::vector<std::string_view> found;
  if (!tags_.any()) return found;
  for (uint32_t at = begins_[i]; at < begins_[i + 1]; at++) found.push_back(names()[tags_.ids[at]]);
  std::sort(found.begin(), found.end());
  return found;
}

uint32_t TagsBuilder::add_name(std::string_view name) {
  append_name(name, &names_);
  return count_++;
}

void TagsBuilder::add(const TagsReader& reader, uint32_t begin, uint32_t end) {
  const Tags& tags = reader.tags();
  if (!tags.any()) return add_none(end - begin);
  const uint32_t first = reader.begin_of(begin), last = reader.begin_of(end);
  if (last - first == tags.ids.size()) {  // all there are
    counts_.append(tags.counts.bytes(begin, end - begin));
    names_.append(tags.names);
    for (uint32_t at = first; at < last; at++) wire::append(&ids_, count_ + tags.ids[at]);
    count_ += static_cast<uint32_t>(reader.names().size());
    return;
  }
  std::vector<uint32_t> which(end - begin);
  std::iota(which.begin(), which.end(), begin);
  add(reader, which);
}

void TagsBuilder::add(const TagsReader& reader, const std::vector<uint32_t>& which) {
  std::vector<uint32_t> ids;
  for (const uint32_t i : which) {
    const uint32_t count = i == kNone ? 0 : reader.count_of(i);
    counts_ += static_cast<char>(count);
    for (uint32_t k = 0; k < count; k++) ids.push_back(reader.tags().ids[reader.begin_of(i) + k]);
  }
  std::vector<uint32_t> used = ids;
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  const uint32_t base = count_;
  for (const uint32_t id : used) add_name(reader.name(id));
  for (const uint32_t id : ids) {
    const auto found = std::lower_bound(used.begin(), used.end(), id);
    wire::append(&ids_, base + static_cast<uint32_t>(found - used.begin()));
  }
}

void TagsBuilder::add(std::string_view tag) {
  if (last_ != tag) last_id_ = add_name(tag);
  last_ = tag;
  counts_ += '\1';
  wire::append(&ids_, last_id_);
}

Tags TagsBuilder::tags() const {
  if (names_.empty()) return {};
  return {names_,
          {counts_.data(), static_cast<uint32_t>(counts_.size())},
          {ids_.data(), static_cast<uint32_t>(ids_.size() / sizeof(uint32_t))}};
}

}  // namespace zlog
