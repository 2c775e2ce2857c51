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
  // Records the newest position of each tag in a tags_list reply. Replies can come in any order.
  // Once `space` tags are known, other tags are ignored.
  void note(const TagsListReply& reply, size_t space);

  // Returns the positions of those entries of a reply that have tags with a newer entry each.
  std::vector<uint64_t> superseded(const TagsListReply& reply);

  size_t size() const { return positions_.size(); }

  // Returns whether superseded() met an entry whose tags each had a newer entry or were not known.
  bool doubtful() const { return doubtful_; }

 private:
  bool doubtful_ = false;
  std::unordered_map<std::string, uint64_t> positions_;
};

}  // namespace zlog
