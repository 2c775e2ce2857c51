#include "cls_zlog/stripe/conditions.h"

#include <algorithm>

#include "cls_zlog/stripe/layout.h"

namespace zlog::stripe {

void Conditions::add(uint32_t part, uint64_t start, const std::vector<TagSet>& unless) {
  parts_.push_back({part, start});
  open_++;
  for (const TagSet& tags : unless) {
    std::vector<uint32_t> ids;
    each_name(tags.names, [&](std::string_view name) {
      const auto [tag, added] = id_of_.try_emplace(std::string(name), sets_of_.size());
      if (added) sets_of_.emplace_back();
      ids.push_back(tag->second);
      return true;
    });
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    const auto [set, added] = set_of_.try_emplace(ids, sets_.size());
    if (added) {
      sets_of_[ids.front()].push_back(set->second);
      sets_.push_back({ids, {}});
    }
    sets_[set->second].owners.push_back({part, start});
  }
}

int Conditions::search(uint64_t end) {
  uint64_t begin = end;
  for (const Owner& each : parts_) begin = std::min(begin, each.start);
  reached_ = end;
  if (begin >= end) return 0;
  if (!header_.tagged) return search_holes(begin, end);
  Filtered filtered;
  if (end - begin >= filter_positions_min(header_)) {
    const uint64_t from = std::min(begin, std::max(header_.indexed, header_.trim_point));
    ZLOG_TRY(look_up_filters(object_, header_, from, end, tag_sets(), &filtered));
    if (filtered.complete) {
      filters_from_ = from;
      known_ = filtered.known;
    }
  }
  std::vector<StoredChunk> chunks;
  const uint64_t indexed = std::min(header_.indexed, end);
  const uint64_t listed = filtered.searched_from(begin);
  if (listed < indexed) {
    ZLOG_TRY(list_chunks(object_, header_, listed, indexed, kChunksMax, &chunks));
  }
  if (chunks.size() == kChunksMax) end = std::min(end, chunks.back().span.last + 1);
  reached_ = begin;
  for (const Segment& segment : segments_of(header_, begin, end, chunks, filtered.absent)) {
    ZLOG_TRY(search(segment));
    if (reached_ < segment.end || open_ == 0 || enough()) return 0;
  }
  return 0;
}

// Searches an object without tags, in which only unwritten positions can get an entry that conflicts.
int Conditions::search_holes(uint64_t begin, uint64_t end) {
  for (const Span& run : header_.holes.runs) {
    const Segment segment = {std::max(begin, run.first), std::min(end, run.last + 1)};
    if (segment.begin >= segment.end) continue;
    ZLOG_TRY(look_through(segment));
    if (reached_ < segment.end) return 0;
  }
  reached_ = end;
  return 0;
}

// Returns the names of the tags in all sets.
TagSets Conditions::tag_sets() const {
  std::vector<std::string_view> names(id_of_.size());
  for (const auto& [name, id] : id_of_) names[id] = name;
  TagSets sets;
  for (const Set& set : sets_) {
    sets.emplace_back();
    for (const uint32_t id : set.ids) sets.back().push_back(names[id]);
  }
  return sets;
}

int Conditions::search(const Segment& segment) {
  if (segment.skipped) {
    reached_ = segment.end;
    return 0;
  }
  bool sound = false;
  if (segment.chunk != nullptr) ZLOG_TRY(look_up(segment, &sound));
  return sound ? 0 : look_through(segment);
}

// Reads the records of a segment, or of a part of it.
int Conditions::look_through(const Segment& segment) {
  Sweep sweep(object_, header_, segment.begin, segment.end);
  const uint64_t before = bytes_;
  reached_ = segment.begin;
  while (!sweep.done() && open_ > 0) {
    Sweep::Part part;
    ZLOG_TRY(sweep.next(&part));
    bytes_ = before + sweep.bytes_fetched();
    reached_ = sweep.position();
    if (part.stored == nullptr) {
      hide(part);
      continue;
    }
    const Record& record = part.stored->record;
    if (record.kind == RecordKind::kLost || record.unreadable()) hide(part);
    if (record.holds_entries()) {
      const TagsReader tags(record.tags);
      const uint32_t matched = Matcher(this, tags).run(part.begin, part.end, part.first);
      if (matched < part.end) reached_ = part.first + (matched - part.begin);
    }
    if (enough()) return 0;
  }
  return 0;
}

// Looks the tags up in a chunk. An entry may have been trimmed or damaged since it was indexed, so
// the records of all candidates are read. Clears `sound` if the chunk cannot be used.
int Conditions::look_up(const Segment& segment, bool* sound) {
  std::vector<std::string> names;
  names.reserve(id_of_.size());
  for (const auto& [name, id] : id_of_) names.push_back(name);
  TagLocations locations;
  *sound = true;
  ZLOG_TRY(read_locations(object_, *segment.chunk, &names, &locations, sound, &bytes_));
  if (!*sound) return 0;
  const std::vector<uint64_t> positions = candidates(segment, &locations);
  const Striping striping = header_.striping();
  std::vector<std::string> keys;
  Span record;
  for (const uint64_t position : positions) {
    if (keys.empty() || !record.covers(position)) {
      const uint32_t index = striping.index(segment.chunk->span, position);
      record = {position, position};
      keys.push_back(record_key(*segment.chunk, index, striping, &record));
    } else {
      keys.push_back(keys.back());
    }
  }
  const uint64_t before = bytes_;
  Walk walk(object_, header_, positions, false, &keys);
  reached_ = segment.end;
  while (!walk.done() && open_ > 0) {
    Walk::Stretch stretch;
    ZLOG_TRY(walk.next(&stretch));
    bytes_ = before + walk.bytes_fetched();
    const Stored* const stored = stretch.stored;
    const TagsReader tags(stored == nullptr ? Tags() : stored->record.tags);
    Matcher matcher(this, tags);
    for (uint32_t i = stretch.begin; i < stretch.end; i++) {
      if (stored == nullptr || stored->record.kind == RecordKind::kLost ||
          stored->record.unreadable()) {
        hide({positions[i], positions[i]});
      } else if (stored->record.holds_entries()) {
        const uint32_t index = striping.index(stored->span, positions[i]);
        matcher.run(index, index + 1, positions[i]);
      }
    }
    if (enough() && !walk.done()) {
      reached_ = positions[stretch.end];
      return 0;
    }
  }
  return 0;
}

// Returns the positions of a segment at which the chunk has all tags of a set. The locations of a
// hostile chunk may not be sorted.
std::vector<uint64_t> Conditions::candidates(const Segment& segment,
                                             TagLocations* locations) const {
  std::vector<const std::vector<TagLocation>*> of_tag(sets_of_.size(), nullptr);
  for (auto& [tag, all] : *locations) {
    std::sort(all.begin(), all.end());
    of_tag[id_of_.find(tag)->second] = &all;
  }
  std::vector<uint64_t> positions;
  for (const Set& set : sets_) {
    const std::vector<TagLocation>* fewest = of_tag[set.ids.front()];
    for (const uint32_t id : set.ids) {
      if (of_tag[id] == nullptr || fewest == nullptr) {
        fewest = nullptr;
        break;
      }
      if (of_tag[id]->size() < fewest->size()) fewest = of_tag[id];
    }
    if (fewest == nullptr || set.owners.empty()) continue;
    uint64_t start = UINT64_MAX;
    for (const Owner& owner : set.owners) start = std::min(start, owner.start);
    for (const TagLocation& location : *fewest) {
      const uint64_t position = header_.striping().after(segment.chunk->span.first, location.index);
      if (position < std::max(start, segment.begin) || position >= segment.end) continue;
      const auto has = [&](uint32_t id) {
        return std::binary_search(of_tag[id]->begin(), of_tag[id]->end(), location);
      };
      if (std::all_of(set.ids.begin(), set.ids.end(), has)) positions.push_back(position);
    }
  }
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

// Compares an entry that has the tags with these ids.
void Conditions::match(std::vector<uint32_t>* ids, uint64_t position) {
  std::sort(ids->begin(), ids->end());
  for (const uint32_t id : *ids) {
    work_ += sets_of_[id].size();
    for (const uint32_t which : sets_of_[id]) {
      Set& set = sets_[which];
      const bool all = std::includes(ids->begin(), ids->end(), set.ids.begin(), set.ids.end());
      if (all && !set.owners.empty()) found(&set, position);
    }
  }
}

uint32_t Conditions::Matcher::run(uint32_t begin, uint32_t end, uint64_t position) {
  if (!tags_.tags().any() || conditions_.sets_.empty()) return end;
  for (uint32_t i = begin; i < end; i++) {
    if (conditions_.work_ >= kWorkMax && i > begin) return i;
    own_.clear();
    for (uint32_t at = tags_.begin_of(i); at < tags_.begin_of(i + 1); at++) {
      if (const uint32_t id = id_of(tags_.tags().ids[at]); id != kNone) own_.push_back(id);
    }
    conditions_.match(&own_, position + (i - begin));
  }
  return end;
}

uint32_t Conditions::Matcher::id_of(uint32_t name) {
  static constexpr uint32_t kUnset = kNone - 1;
  if (ids_.size() <= name) ids_.resize(name + 1, kUnset);
  if (ids_[name] == kUnset) {
    const auto known = conditions_.id_of_.find(tags_.name(name));
    ids_[name] = known == conditions_.id_of_.end() ? kNone : known->second;
  }
  return ids_[name];
}

void Conditions::found(Set* set, uint64_t position) {
  work_ += set->owners.size();
  for (const Owner& owner : set->owners) {
    if (owner.start <= position) note(owner.part, position);
  }
  const auto done = [&](const Owner& owner) { return conflicts_[owner.part].has_value(); };
  set->owners.erase(std::remove_if(set->owners.begin(), set->owners.end(), done),
                    set->owners.end());
}

// Notes positions that may hide an entry with any tags.
void Conditions::hide(const Span& span) {
  for (const Owner& each : parts_) {
    if (each.start <= span.last) note(each.part, std::max(each.start, span.first));
  }
}

void Conditions::note(uint32_t part, uint64_t position) {
  if (conflicts_[part]) return;
  conflicts_[part] = position;
  const auto same = [&](const Owner& each) { return each.part == part; };
  open_ -= static_cast<size_t>(std::any_of(parts_.begin(), parts_.end(), same));
}

}  // namespace zlog::stripe
