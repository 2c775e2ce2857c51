#include "cls_zlog/client/newest_of_tags.h"

#include <algorithm>

namespace zlog {

void NewestOfTags::note(const TagsListReply& reply, size_t space) {
  const TagsReader tags(reply.tags);
  std::vector<uint64_t> newest(tags.names().size(), 0);
  for (uint32_t i = 0; i < reply.count; i++) {
    for (uint32_t at = tags.begin_of(i); at < tags.begin_of(i + 1); at++) {
      uint64_t& position = newest[reply.tags.ids[at]];
      position = std::max(position, reply.positions[i]);
    }
  }
  for (size_t id = 0; id < newest.size(); id++) {
    const std::string name(tags.names()[id]);
    const auto found = positions_.find(name);
    if (found != positions_.end()) {
      found->second = std::max(found->second, newest[id]);
    } else if (positions_.size() < space) {
      positions_.emplace(name, newest[id]);
    }
  }
}

std::vector<uint64_t> NewestOfTags::superseded(const TagsListReply& reply) {
  constexpr uint64_t kUnknown = UINT64_MAX;
  const TagsReader tags(reply.tags);
  std::vector<uint64_t> newest;  // of each name
  newest.reserve(tags.names().size());
  for (const std::string_view name : tags.names()) {
    const auto found = positions_.find(std::string(name));
    newest.push_back(found == positions_.end() ? kUnknown : found->second);
  }
  std::vector<uint64_t> found;
  for (uint32_t i = 0; i < reply.count; i++) {
    uint32_t newer = 0;
    uint32_t unknown = 0;
    for (uint32_t at = tags.begin_of(i); at < tags.begin_of(i + 1); at++) {
      const uint64_t position = newest[reply.tags.ids[at]];
      if (position == kUnknown) {
        unknown++;
      } else if (position > reply.positions[i]) {
        newer++;
      }
    }
    if (newer > 0 && newer == tags.count_of(i)) found.push_back(reply.positions[i]);
    doubtful_ = doubtful_ || (newer > 0 && unknown > 0 && newer + unknown == tags.count_of(i));
  }
  return found;
}

}  // namespace zlog
