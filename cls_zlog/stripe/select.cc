#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/stripe/answering.h"
#include "cls_zlog/stripe/tag_filters.h"
#include "cls_zlog/stripe/tag_index.h"

namespace zlog::stripe {
namespace {

// An entry that may have the tags.
struct Hit {
  uint64_t position = 0;
  TagLocation location;
  std::string_view tag;  // by which it was found; its only one if location.alone
  bool direct = false;   // the data can be read at the location
};

// What was found at positions [begin, end).
struct Found {
  std::vector<Hit> hits;  // ascending, without duplicates
  std::vector<SelectGap> gaps;
  uint64_t begin = 0;
  uint64_t end = 0;
  const StoredChunk* chunk = nullptr;  // in which they were found
};

class Selection {
 public:
  Selection(Object& object, Header& header, const SelectRequest& request)
      : object_(object),
        header_(header),
        request_(request),
        striping_(header.striping()),
        reply_(object, header, true, !request.without_data,
               ReadReplyBuilder(header.taken(), request.with_ids, 0, true)) {}

  Result<SelectReplyBuilder> run() {
    const uint64_t start = std::max(request_.start, header_.trim_point);
    uint64_t end = std::max(start, request_.end);
    const size_t chunks_max = request_.reverse ? SIZE_MAX : kChunksMax;
    Filtered filtered;
    ZLOG_TRY(look_up_filters(start, end, &filtered));
    std::vector<StoredChunk> chunks;
    ZLOG_TRY(list_chunks(object_, header_, filtered.searched_from(start),
                         std::min(end, header_.records_end()), chunks_max, &chunks));
    const bool all_chunks = chunks.size() < chunks_max;
    if (!all_chunks) end = std::min(end, chunks.back().span.last + 1);
    std::vector<Segment> segments = segments_of(header_, start, end, chunks, filtered.absent);
    if (request_.reverse) std::reverse(segments.begin(), segments.end());
    uint64_t reached = request_.reverse ? end : start;
    const uint64_t goal = request_.reverse ? start : end;
    for (Segment& segment : segments) {
      while (segment.begin < segment.end && !full_) {
        Found found;
        ZLOG_TRY(search(segment, &found));
        ZLOG_TRY(answer(&found));
        reached = request_.reverse ? found.begin : found.end;
        (request_.reverse ? segment.end : segment.begin) = reached;
        full_ = full_ || gaps_.size() >= limits::select_gaps_max ||
                positions_.size() >= request_.entries_max ||
                bytes_read_ >= limits::walk_bytes_enough;
      }
    }
    // In reverse, the positions below the trim point come last.
    if (!request_.reverse || reached == goal) {
      if (request_.start < start) add_trimmed(start);
      if (reached == goal && request_.reverse) reached = request_.start;
      if (reached == goal && !request_.reverse && all_chunks) reached = request_.end;
    }
    std::sort(gaps_.begin(), gaps_.end(),
              [](const SelectGap& a, const SelectGap& b) { return a.first < b.first; });
    SelectReplyBuilder builder;
    builder.reply.highest = header_.taken();
    builder.reply.end = reached;
    builder.reply.gaps = std::move(gaps_);
    builder.positions = std::move(positions_);
    builder.entries = std::move(reply_.builder());
    return builder;
  }

 private:
  int look_up_filters(uint64_t start, uint64_t end, Filtered* out) {
    const bool many = end_of(start, filter_positions_min(header_)) <= header_.records_end();
    if (header_.appenders.empty() || !many) return 0;  // only objects that order logs have filters
    TagSets sets(request_.all ? 1 : request_.tags.size());
    for (size_t i = 0; i < request_.tags.size(); i++) {
      sets[request_.all ? 0 : i].push_back(request_.tags[i]);
    }
    return stripe::look_up_filters(object_, header_, start, end, sets, out);
  }

  int search(const Segment& segment, Found* out) {
    if (segment.skipped) {
      out->begin = segment.begin;
      out->end = segment.end;
      return 0;
    }
    if (segment.chunk != nullptr) {
      ZLOG_TRY(open(*segment.chunk));
      if (sound_) {
        look_up(segment, out);
        return 0;
      }
    }
    return request_.reverse ? look_through_last(segment, out)
                            : look_through(segment.begin, segment.end, out);
  }

  // Reads the locations of the tags in a chunk.
  int open(const StoredChunk& chunk) {
    if (opened_ == &chunk) return 0;
    opened_ = &chunk;
    locations_.clear();
    sound_ = true;
    uint64_t bytes = 0;
    return read_locations(object_, chunk, &request_.tags, &locations_, &sound_, &bytes);
  }

  // Reads the records of the segment's last positions, for a reverse search. A result that does not
  // reach the segment's end is useless, so this tries again with fewer positions, depending on how
  // far the last try got.
  int look_through_last(const Segment& segment, Found* out) {
    const uint64_t end = segment.end;
    while (true) {
      *out = Found();
      const uint64_t from =
          end - segment.begin > reverse_part_ ? end - reverse_part_ : segment.begin;
      uint64_t first_record = end;
      ZLOG_TRY(look_through(from, end, out, &first_record));
      if (out->end == end) {
        reverse_part_ = reverse_part_ > UINT64_MAX / 4 ? UINT64_MAX : reverse_part_ * 4;
        return 0;
      }
      const bool late = bytes_read_ >= limits::walk_bytes_enough;
      const uint64_t through = out->end - std::min(first_record, out->end);
      reverse_part_ = late ? 1 : std::max<uint64_t>(through / 2, 1);
    }
  }

  // Reads the records of [begin, end) or of a bounded part of it.
  int look_through(uint64_t begin, uint64_t end, Found* out, uint64_t* first_record = nullptr) {
    out->begin = begin;
    out->end = end;
    Sweep sweep(object_, header_, begin, std::min(end, header_.records_end()));
    bool enough = false;
    while (!sweep.done() && !enough) {
      Sweep::Part part;
      ZLOG_TRY(sweep.next(&part));
      if (part.stored == nullptr) {
        add_holes(part.first, part.last + 1, &out->gaps);
        continue;
      }
      if (first_record != nullptr) *first_record = std::min(*first_record, part.first);
      look_at(part, out);
      enough = sweep.bytes_fetched() >= limits::walk_bytes_enough / 2 ||
               out->gaps.size() >= limits::select_gaps_max / 2 ||
               out->hits.size() >= limits::entries_max;
    }
    if (!sweep.done()) out->end = sweep.position();
    bytes_read_ += sweep.bytes_fetched();
    return 0;
  }

  void look_at(const Sweep::Part& part, Found* out) {
    const Record& record = part.stored->record;
    if (record.kind == RecordKind::kLost || record.unreadable()) {
      const EntryState state = record.unreadable() ? EntryState::kUnreadable : EntryState::kLost;
      out->gaps.push_back({{part}, state});
    }
    if (!record.holds_entries() || !record.tags.any()) return;
    const TagsReader tags(record.tags);
    for (const uint32_t i : matching(tags, part.begin, part.end)) {
      if (!record.written(i)) continue;
      const std::string_view tag = tags.names()[record.tags.ids[tags.begin_of(i)]];
      const TagLocation location = location_of(record, i, tags);
      out->hits.push_back(hit_of(striping_.after(part.first, i - part.begin), location,
                                 location.alone ? tag : request_.tags.front()));
    }
  }

  // Returns which of the entries [begin, end) match the request.
  std::vector<uint32_t> matching(const TagsReader& reader, uint32_t begin, uint32_t end) const {
    std::vector<uint32_t> found;
    std::vector<uint64_t> bits(reader.names().size(), 0);  // of each name: its bit, if it is wanted
    std::map<std::string_view, uint64_t> bit_of;           // at most entry_tags_max of them
    for (const std::string& tag : request_.tags) bit_of.emplace(tag, uint64_t{1} << bit_of.size());
    uint64_t wanted = 0;
    uint64_t present = 0;
    for (const auto& [tag, bit] : bit_of) wanted |= bit;
    for (size_t id = 0; id < bits.size(); id++) {
      const auto known = bit_of.find(reader.names()[id]);
      if (known != bit_of.end()) bits[id] = known->second;
      present |= bits[id];
    }
    if (present == 0 || (request_.all && present != wanted)) return found;
    for (uint32_t i = begin; i < end; i++) {
      uint64_t has = 0;
      for (uint32_t at = reader.begin_of(i); at < reader.begin_of(i + 1); at++) {
        has |= bits[reader.tags().ids[at]];
      }
      if (request_.all ? has == wanted : has != 0) found.push_back(i);
    }
    return found;
  }

  // Adds the positions [begin, end), which have no record and so are unwritten or lost.
  void add_holes(uint64_t begin, uint64_t end, std::vector<SelectGap>* gaps) {
    uint64_t next = begin;
    while (next < end) {
      const uint64_t hole = std::min(header_.first_at(header_.holes.next(next)), end);
      if (next < hole) add_gap(next, hole, EntryState::kLost, gaps);
      if (hole >= end) return;
      const auto run = std::find_if(header_.holes.runs.begin(), header_.holes.runs.end(),
                                    [&](const Span& each) { return each.covers(hole); });
      const uint64_t hole_end =
          run == header_.holes.runs.end() ? end : std::min(header_.first_at(run->last + 1), end);
      add_gap(hole, hole_end, EntryState::kUnwritten, gaps);
      next = hole_end;
    }
  }

  // Adds the object's positions of [begin, end); `begin` is one of them.
  void add_gap(uint64_t begin, uint64_t end, EntryState state, std::vector<SelectGap>* gaps) {
    gaps->push_back({{{begin, striping_.before(header_.first_at(end), 1)}}, state});
  }

  void add_trimmed(uint64_t start) {
    const uint64_t first = header_.first_at(request_.start);
    const uint64_t end = header_.first_at(std::min(start, request_.end));
    if (first < end) add_gap(first, end, EntryState::kTrimmed, &gaps_);
  }

  // Finds the locations with any of the tags, or with all. A hostile bucket may not be sorted.
  void look_up(const Segment& segment, Found* out) const {
    out->begin = segment.begin;
    out->end = segment.end;
    out->chunk = segment.chunk;
    const auto missing = [&](const std::string& tag) { return locations_.count(tag) == 0; };
    if (request_.all && std::any_of(request_.tags.begin(), request_.tags.end(), missing)) return;
    std::vector<Hit> candidates;
    for (const auto& [tag, all] : locations_) {
      for (const TagLocation& location : all) {
        const uint64_t position = striping_.after(segment.chunk->span.first, location.index);
        if (position < segment.begin || position >= segment.end) continue;
        candidates.push_back(hit_of(position, location, tag));
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Hit& a, const Hit& b) { return a.position < b.position; });
    for (auto at = candidates.begin(); at != candidates.end();) {
      const auto next = std::find_if(
          at, candidates.end(), [&](const Hit& other) { return other.position != at->position; });
      if (!request_.all || static_cast<size_t>(next - at) >= locations_.size()) {
        out->hits.push_back(*at);
      }
      at = next;
    }
  }

  // `tag` must be equal to one of the request's tags.
  Hit hit_of(uint64_t position, const TagLocation& location, std::string_view tag) const {
    Hit hit;
    hit.position = position;
    hit.location = location;
    hit.tag = *std::find(request_.tags.begin(), request_.tags.end(), tag);  // which stays in memory
    hit.direct = location.offset != TagLocation::kInRecord && location.alone &&
                 location.bytes > 0 && !request_.with_ids && reply_.takes_data();
    return hit;
  }

  // Adds as many hits to the reply as fit; `found` then covers only that part.
  int answer(Found* found) {
    std::vector<Hit>& hits = found->hits;
    if (request_.reverse) std::reverse(hits.begin(), hits.end());
    const auto cut_before = [&](size_t i) {
      if (request_.reverse) {
        found->begin = hits[i].position + 1;
      } else {
        found->end = hits[i].position;
      }
      hits.resize(i);
    };
    const size_t space = request_.entries_max - positions_.size();
    if (hits.size() > space) cut_before(space);
    size_t fit = 0;
    ZLOG_TRY(read_direct(&hits, &fit));
    size_t i = 0;
    while (i < fit && !full_) {
      size_t taken = 0;
      ZLOG_TRY(hits[i].direct ? answer_direct(hits[i], &taken) : answer_stored(*found, i, &taken));
      i += taken;
    }
    if (i < hits.size()) {
      full_ = true;
      cut_before(i);
    }
    for (const SelectGap& gap : found->gaps) {
      const uint64_t first = std::max(gap.first, header_.first_at(found->begin));
      const uint64_t end = header_.first_at(std::min(striping_.next(gap.last), found->end));
      if (first < end) add_gap(first, end, gap.state, &gaps_);
    }
    return 0;
  }

  // Checks the data of direct hits, and sets `fit` to the number of hits that fit into the reply.
  // If the checksum differs or all bytes are zero, the entry was trimmed or is damaged, and its
  // record must be read.
  int read_direct(std::vector<Hit>* hits, size_t* fit) {
    uint64_t bytes = reply_.data_bytes();
    for (*fit = 0; *fit < hits->size(); ++*fit) {
      Hit& hit = (*hits)[*fit];
      if (!hit.direct) continue;
      bytes += hit.location.bytes;
      if (bytes > bytes_max() && *fit > 0) break;
      std::string data;
      ZLOG_TRY(object_.read(hit.location.offset, hit.location.bytes, &data));
      hit.direct = data.size() == hit.location.bytes &&
                   data.find_first_not_of('\0') != std::string::npos &&
                   entry_crc(hit.position, data) == hit.location.crc;
    }
    return 0;
  }

  uint64_t bytes_max() const { return std::min(request_.bytes_max, limits::read_reply_bytes_max); }

  int answer_direct(const Hit& hit, size_t* taken) {
    full_ = !positions_.empty() && reply_.data_bytes() + hit.location.bytes > bytes_max();
    if (full_) return 0;
    ReadEntry entry;
    entry.state = EntryState::kWritten;
    entry.timestamp = hit.location.timestamp;
    entry.crc = hit.location.crc;
    positions_.push_back(hit.position);
    reply_.builder().add(entry, hit.location.bytes, hit.tag);
    *taken = 1;
    full_ = reply_.full();
    uint64_t there = 0;
    ZLOG_TRY(object_.answer_stream(hit.location.offset, hit.location.bytes, &there));
    return there == hit.location.bytes ? 0 : -EIO;  // read_direct() has read them
  }

  // Adds hits to the reply by reading their records, from the i-th hit up to the next direct one.
  int answer_stored(const Found& found, size_t i, size_t* taken) {
    std::vector<uint64_t> positions;
    std::vector<std::string> keys;
    std::string key;
    Span record;
    for (size_t next = i; next < found.hits.size() && !found.hits[next].direct; next++) {
      const Hit& hit = found.hits[next];
      positions.push_back(hit.position);
      if (found.chunk == nullptr) continue;
      if (key.empty() || !record.covers(hit.position)) {
        key = record_key(*found.chunk, hit.location.index, striping_, &record);
      }
      keys.push_back(key);
    }
    const uint32_t before = reply_.count();
    Scan<Answering> scan(object_, header_, positions, request_.bytes_max, &reply_, &blocks_, &keys);
    ZLOG_TRY(scan.run());
    bytes_read_ += scan.bytes_fetched();
    *taken = reply_.count() - before;
    full_ = *taken < positions.size() || reply_.full() || bytes_read_ >= limits::walk_bytes_enough;
    positions_.insert(positions_.end(), positions.begin(),
                      positions.begin() + static_cast<std::ptrdiff_t>(*taken));
    return 0;
  }

  Object& object_;
  Header& header_;
  const SelectRequest& request_;
  const Striping striping_;
  Answering reply_;
  std::vector<uint64_t> positions_;
  std::vector<SelectGap> gaps_;
  const StoredChunk* opened_ = nullptr;
  TagLocations locations_;  // of the opened chunk
  bool sound_ = true;
  BlocksSeen blocks_;
  uint64_t bytes_read_ = 0;             // of records
  uint64_t reverse_part_ = UINT64_MAX;  // positions to look through in reverse
  bool full_ = false;
};

}  // namespace

Result<SelectReplyBuilder> select(Object& object, Header& header, const SelectRequest& request) {
  return Selection(object, header, request).run();
}

}  // namespace zlog::stripe
