#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/fields.h"

// The tags of entries in a row. Names are said once, and entries say which of them they have.
namespace zlog {

struct Tags {
  std::string_view names;        // of each name a u8 length, and as many bytes
  wire::Column<uint8_t> counts;  // of each entry: how many tags it has
  wire::Column<uint32_t> ids;    // of these, entry by entry: which of the names, ascending

  bool any() const { return !names.empty(); }

  // The fields of `count` entries in a message or value that has them since this version.
  template <typename V>
  void each(V& v, uint32_t count, uint8_t since,
            uint32_t names_bytes_max = limits::tag_names_bytes_max) {
    v("tag_names", names, wire::at_most(names_bytes_max).since(since));
    v("tag_counts", counts, wire::number_of(any() ? count : 0).since(since));
    v("tag_ids", ids, wire::number_of(total()).since(since));
  }

  // How many ids belong to the entries before the i-th one.
  uint32_t begin_of(uint32_t i) const;
  uint32_t total() const { return begin_of(counts.size()); }

  // Whether these are tags of `count` entries: none of the columns is missing, the names are names, no
  // more than there are uses of them, and each entry's ids tell of different ones.
  bool valid(uint32_t count) const;
};

bool valid_tag(std::string_view tag);

// Takes them apart. Views into the tags.
class TagsReader {
 public:
  explicit TagsReader(const Tags& tags);

  const std::vector<std::string_view>& names() const;
  std::string_view name(uint32_t id) const;  // of one; the first few need no table of them all
  uint32_t begin_of(uint32_t i) const { return begins_[i]; }
  uint32_t count_of(uint32_t i) const { return begins_[i + 1] - begins_[i]; }

  // The tags of the i-th entry, sorted; none where the entries have no tags at all.
  std::vector<std::string_view> of(uint32_t i) const;

  const Tags& tags() const { return tags_; }

 private:
  const Tags tags_;
  std::vector<uint32_t> begins_;                 // count + 1 of them
  mutable std::vector<std::string_view> names_;  // once they were asked for
  mutable uint32_t looked_up_ = 0;               // names that were, one by one
};

// Puts together the tags of some entries out of others'.
class TagsBuilder {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  void add_none(uint32_t count) { counts_.append(count, '\0'); }

  // The tags of entries [begin, end) of a reader's.
  void add(const TagsReader& reader, uint32_t begin, uint32_t end);

  // Those of entries of a reader's that has some: each name once, however many rows they are in. kNone:
  // an entry without tags.
  void add(const TagsReader& reader, const std::vector<uint32_t>& which);

  // An entry with this tag alone.
  void add(std::string_view tag);

  // A view into the builder; empty when no entry has a tag.
  Tags tags() const;

  // Whether a reply has no room for the tags of a further record.
  bool full() const {
    return names_.size() >= limits::tag_names_bytes_max ||
           ids_.size() >= limits::tag_ids_max * sizeof(uint32_t);
  }

  // Bytes of what it has.
  size_t bytes() const { return names_.size() + counts_.size() + ids_.size(); }

 private:
  uint32_t add_name(std::string_view name);

  std::string names_, counts_, ids_;
  uint32_t count_ = 0;     // names
  std::string_view last_;  // the one that was added by itself last; into the caller's memory
  uint32_t last_id_ = 0;
};

// What a reader asks for: entries that have any of some tags, or all of them.
class TagsWanted {
 public:
  TagsWanted(const std::vector<std::string>& tags, bool all) : tags_(tags), all_(all) {}

  // Those of the entries [begin, end) that have them, ascending.
  std::vector<uint32_t> among(const TagsReader& reader, uint32_t begin, uint32_t end) const;

  const std::vector<std::string>& tags() const { return tags_; }
  bool all() const { return all_; }

 private:
  const std::vector<std::string>& tags_;
  const bool all_;
};

}  // namespace zlog
