#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/fields.h"

// The tags of consecutive entries: every name once, and for each entry the ids of its names.
namespace zlog {

bool valid_tag(std::string_view tag);

// Appends a name as it is stored: a u8 length and the bytes. Names follow each other directly.
void append_name(std::string_view name, std::string* out);

// Calls use(name) for each name. Returns false if the bytes are not names or use() returned false.
template <typename Use>
bool each_name(std::string_view names, Use&& use) {
  while (!names.empty()) {
    const size_t size = static_cast<uint8_t>(names[0]);
    if (size >= names.size() || !use(names.substr(1, size))) return false;
    names.remove_prefix(1 + size);
  }
  return true;
}

struct Tags {
  std::string_view names;
  wire::Column<uint8_t> counts;  // number of each entry's tags
  wire::Column<uint32_t> ids;    // entry by entry, ascending: indices of the names

  bool any() const { return !names.empty(); }

  // Visits the fields of these tags, which belong to `count` entries. `since` is the version of the
  // message or stored value in which tags were added.
  template <typename V>
  void each(V& v, uint32_t count, uint8_t since,
            uint32_t names_bytes_max = limits::tag_names_bytes_max) {
    v("tag_names", names, wire::at_most(names_bytes_max).since(since));
    v("tag_counts", counts, wire::number_of(any() ? count : 0).since(since));
    v("tag_ids", ids, wire::number_of(total()).since(since));
  }

  // Returns the index of the i-th entry's first id.
  uint32_t begin_of(uint32_t i) const;
  uint32_t total() const { return begin_of(counts.size()); }

  // Returns whether these are valid tags of `count` entries: the columns have the right sizes, the
  // names are valid, there are no more names than ids, and no entry has a tag twice.
  bool valid(uint32_t count) const;
};

// Reads tags. Its results point into them.
class TagsReader {
 public:
  explicit TagsReader(const Tags& tags);

  const std::vector<std::string_view>& names() const;
  std::string_view name(uint32_t id) const;  // looks up a few names without a table of all
  uint32_t begin_of(uint32_t i) const { return begins_[i]; }
  uint32_t count_of(uint32_t i) const { return begins_[i + 1] - begins_[i]; }

  // Returns the tags of the i-th entry in ascending order.
  std::vector<std::string_view> of(uint32_t i) const;

  const Tags& tags() const { return tags_; }

 private:
  const Tags tags_;
  std::vector<uint32_t> begins_;                 // count + 1 of them
  mutable std::vector<std::string_view> names_;  // filled by names()
  mutable uint32_t looked_up_ = 0;               // names found without names_
};

// Collects the tags of entries.
class TagsBuilder {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  void add_none(uint32_t count) { counts_.append(count, '\0'); }

  // Adds the entries [begin, end) of a reader.
  void add(const TagsReader& reader, uint32_t begin, uint32_t end);

  // Adds some entries of a reader, with each name only once. kNone adds an entry without tags.
  void add(const TagsReader& reader, const std::vector<uint32_t>& which);

  // Adds an entry with one tag.
  void add(std::string_view tag);

  // Returns the tags, which point into the builder; they are empty if no entry has a tag.
  Tags tags() const;

  // Returns whether a reply has no space for the tags of another record.
  bool full() const {
    return names_.size() >= limits::tag_names_bytes_max ||
           ids_.size() >= limits::tag_ids_max * sizeof(uint32_t);
  }

  size_t bytes() const { return names_.size() + counts_.size() + ids_.size(); }

 private:
  uint32_t add_name(std::string_view name);

  std::string names_, counts_, ids_;
  uint32_t count_ = 0;     // names
  std::string_view last_;  // the last tag that was added alone; in the caller's memory
  uint32_t last_id_ = 0;
};

}  // namespace zlog
