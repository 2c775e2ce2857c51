#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "cls_zlog/wire/select_messages.h"

namespace zlog {

// The position of the newest known entry with each tag, for compaction by key.
class NewestOfTags {
 public:
  // Adds the entries of a tags_list reply, in any order; with new tags, up to `space` tags in all.
  void note(const TagsListReply& reply, size_t space);

  // The entries of a reply that have a newer entry for each of their tags.
  std::vector<uint64_t> superseded(const TagsListReply& reply);

  size_t size() const { return positions_.size(); }

  // Whether superseded() met an entry whose tags had a newer entry, or were not known.
  bool doubtful() const { return doubtful_; }

 private:
  bool doubtful_ = false;
  std::unordered_map<std::string, uint64_t> positions_;
};

}  // namespace zlog
