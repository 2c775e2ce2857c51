#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cls_zlog/stripe/tag_chunks.h"
#include "cls_zlog/stripe/tag_filters.h"
#include "cls_zlog/wire/append_messages.h"

namespace zlog::stripe {

// Finds entries that conflict with the conditions of an append's parts: entries that have all tags
// of a set, and positions that may hide such an entry. All positions belong to an object of stride 1.
class Conditions {
 public:
  Conditions(Object& object, const Header& header, size_t parts)
      : object_(object), header_(header), conflicts_(parts) {}

  // Adds a part's condition, which is about the positions from `start` on.
  void add(uint32_t part, uint64_t start, const std::vector<TagSet>& unless);

  // Searches the stored entries below `end` for all parts, with the index of tags where it covers
  // the positions. Stops early after a limited amount of work, or once every part has a conflict.
  int search(uint64_t end);

  // Adds a filter for positions of the search that have none, if there are many, so that the next
  // search need not read their records.
  int add_filter() const {
    return stripe::add_filter(object_, header_, filters_from_, reached_, known_);
  }

  // Returns one past the last position that was searched.
  uint64_t reached() const { return reached_; }

  // Returns the position of a part's first conflict.
  const std::optional<uint64_t>& conflict(uint32_t part) const { return conflicts_[part]; }

  // Notes a conflict that has another reason.
  void note(uint32_t part, uint64_t position);

  // Compares entries with all conditions.
  class Matcher {
   public:
    Matcher(Conditions* conditions, const TagsReader& tags)
        : conditions_(*conditions), tags_(tags) {}

    // Compares the entries [begin, end), the first of which is at a position. Trimmed entries have
    // no tags. Returns the end, or where it stopped because the work became too much.
    uint32_t run(uint32_t begin, uint32_t end, uint64_t position);

   private:
    uint32_t id_of(uint32_t name);

    Conditions& conditions_;
    const TagsReader& tags_;
    std::vector<uint32_t> ids_;  // of each name, once it was looked up
    std::vector<uint32_t> own_;  // of an entry
  };

 private:
  struct Owner {
    uint32_t part = 0;
    uint64_t start = 0;
  };
  // A set of tags, and the parts in whose conditions it is.
  struct Set {
    std::vector<uint32_t> ids;  // ascending
    std::vector<Owner> owners;  // without those that have a conflict
  };

  TagSets tag_sets() const;
  int search(const Segment& segment);
  int search_holes(uint64_t begin, uint64_t end);
  int look_up(const Segment& segment, bool* sound);
  int look_through(const Segment& segment);
  std::vector<uint64_t> candidates(const Segment& segment, TagLocations* locations) const;
  void match(std::vector<uint32_t>* ids, uint64_t position);
  void found(Set* set, uint64_t position);
  void hide(const Span& span);
  bool enough() const { return bytes_ >= limits::walk_bytes_enough || work_ >= kWorkMax; }

  static constexpr uint64_t kWorkMax = 1u << 22;  // comparisons of an entry with a set
  static constexpr uint32_t kNone = UINT32_MAX;   // the id of a tag that is in no set

  Object& object_;
  const Header& header_;
  std::vector<std::optional<uint64_t>> conflicts_;      // by part
  std::vector<Owner> parts_;                            // parts that have a condition
  std::map<std::string, uint32_t, std::less<>> id_of_;  // of each tag in a set
  std::vector<std::vector<uint32_t>> sets_of_;  // of each tag: the sets whose first tag it is
  std::map<std::vector<uint32_t>, uint32_t> set_of_;
  std::vector<Set> sets_;
  size_t open_ = 0;  // parts without a conflict
  uint64_t reached_ = 0;
  uint64_t filters_from_ = limits::position_max + 1;  // where the search in filters began
  std::vector<Span> known_;                           // positions with a filter
  uint64_t bytes_ = 0;                                // of records and of the index
  uint64_t work_ = 0;
};

}  // namespace zlog::stripe
