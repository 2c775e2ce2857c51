#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cls_zlog/wire/select_messages.h"

namespace zlog {

// Where the newest entry with each tag is, as far as it was told: what compaction by key goes by.
class NewestOfTags {
 public:
  // Notes the entries of a reply of tags_list, in any order; of tags that it has not known those for
  // which there is room.
  void note(const TagsListReply& reply, size_t room);

  // The entries of a reply of which a newer one is known for each of their tags.
  std::vector<uint64_t> superseded(const TagsListReply& reply);

  size_t size() const { return positions_.size(); }

  // Whether one had a newer one for some of its tags, and others that are not known.
  bool doubtful() const { return doubtful_; }

 private:
  bool doubtful_ = false;
  std::unordered_map<std::string, uint64_t> positions_;
};

}  // namespace zlog
