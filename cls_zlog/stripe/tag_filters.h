#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cls_zlog/base/object.h"
#include "cls_zlog/stripe/header.h"

// Filters of tags (docs/formats/tag-index.md). In a log that is ordered by its object, a filter has
// the hashes of all tags of consecutive positions, so a search for other tags skips them:
//
//   f.<part, 2 hex digits>.<last position, 16 hex digits>.<number of positions, hex>
//
// A position is in a filter only if its record was readable then. No entry can get more tags later,
// so a filter stays true, and nothing has to change it.
namespace zlog::stripe {

constexpr std::string_view kFilters = "f.";

// Sets of tags. An entry that has all tags of one set matches them.
using TagSets = std::vector<std::vector<std::string_view>>;

// The results of a search in filters; spans in ascending order of their last positions.
struct Filtered {
  std::vector<Span> known;   // the positions with a filter
  std::vector<Span> absent;  // known positions at which no entry matches
  bool complete = false;     // whether all filters were looked up

  // Returns the first position at or above `begin` that is not absent.
  uint64_t searched_from(uint64_t begin) const {
    for (const Span& span : absent) {
      if (span.covers(begin)) begin = span.last + 1;
    }
    return begin;
  }
};

// Returns the number of positions that are searched with filters. To read fewer takes less time.
uint64_t filter_positions_min(const Header& header);

// Looks sets of tags up in the filters that have positions in [begin, end). Reads up to 8 MiB of
// filters, and none if there are more than 1,024 tags.
int look_up_filters(Object& object, const Header& header, uint64_t begin, uint64_t end,
                    const TagSets& sets, Filtered* out);

// Adds a filter if positions of [begin, end) have none, except for a few at the end. `known` are
// those that have one.
int add_filter(Object& object, const Header& header, uint64_t begin, uint64_t end,
               const std::vector<Span>& known);

// Removes the filters that are wholly below the trim point.
int forget_filters(Object& object, const Header& header);

}  // namespace zlog::stripe
