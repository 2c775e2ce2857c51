#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/stripe/answering.h"
#include "cls_zlog/stripe/tag_index.h"

namespace zlog::stripe {
namespace {

// An entry that may have the tags.
struct Hit {
  uint64_t position = 0;
  TagPlace place;
  std::string_view tag;  // that it was found by; where it is its only one, by `place`
  bool direct = false;   // its data is at the place
};

// What was found in positions in a row.
struct Found {
  std::vector<Hit> hits;        // ascending, each position once
  std::vector<SelectGap> gaps;  // ascending
  uint64_t begin = 0;           // it is about [begin, end)
  uint64_t end = 0;
};

constexpr size_t kChunksMax = 256;  // that one search upwards goes by

class Selection {
 public:
  Selection(Object& object, Header& header, const SelectRequest& request)
      : object_(object),
        header_(header),
        request_(request),
        spacing_(header.spacing()),
        wanted_(request.tags, request.all),
        records_end_(header.highest ? *header.highest + 1 : 0),
        reply_(object, header, true, !request.without_data,
               ReadReplyBuilder(header.taken(), request.with_ids, 0, true)) {}

  Result<SelectReplyBuilder> run() {
    const uint64_t start = std::max(request_.start, header_.trim_point);
    uint64_t end = std::max(start, request_.end);
    const size_t chunks_max = request_.reverse ? SIZE_MAX : kChunksMax;
    ZLOG_TRY(
        list_chunks(object_, header_, start, std::min(end, records_end_), chunks_max, &chunks_));
    const bool all_chunks = chunks_.size() < chunks_max;
    if (!all_chunks) end = std::min(end, chunks_.back().span.last + 1);
    uint64_t reached = request_.reverse ? end : start;
    const uint64_t goal = request_.reverse ? start : end;
    while (reached != goal && !full_) {
      Found found;
      ZLOG_TRY(request_.reverse ? part_below(start, reached, &found)
                                : part_from(reached, end, &found));
      ZLOG_TRY(answer(&found));
      reached = request_.reverse ? found.begin : found.end;
      full_ = full_ || gaps_.size() >= limits::select_gaps_max ||
              positions_.size() >= request_.entries_max ||
              bytes_looked_at_ >= limits::walk_bytes_enough;
    }
    // What lies below the trim point is the last that a search in reverse comes to.
    if (!(request_.reverse && reached != goal)) {
      if (request_.start < start) note_trimmed(start);
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
  // The next part from a position on: of a chunk what its places tell, or of what they do not tell a
  // part that a bounded number of bytes goes to.
  int part_from(uint64_t begin, uint64_t end, Found* out) {
    const auto next = std::find_if(chunks_.begin(), chunks_.end(),
                                   [&](const StoredChunk& c) { return c.span.last >= begin; });
    if (next == chunks_.end()) return look_through(begin, end, out);
    if (next->span.first > begin) {
      return look_through(begin, std::min(end, next->span.first), out);
    }
    ZLOG_TRY(open(*next));
    uint64_t stop = std::min(end, next->span.last + 1);
    if (!sound_) return look_through(begin, stop, out);
    for (const Span& span : doubtful_) {
      if (span.last < begin) continue;
      if (span.first <= begin) return look_through(begin, std::min(stop, span.last + 1), out);
      stop = std::min(stop, span.first);
      break;
    }
    return look_up(*next, begin, stop, out);
  }

  // The same downwards.
  int part_below(uint64_t begin, uint64_t end, Found* out) {
    const auto next = std::find_if(chunks_.rbegin(), chunks_.rend(),
                                   [&](const StoredChunk& c) { return c.span.first < end; });
    if (next == chunks_.rend()) return look_through_last(begin, end, out);
    if (next->span.last + 1 < end) {
      return look_through_last(std::max(begin, next->span.last + 1), end, out);
    }
    ZLOG_TRY(open(*next));
    uint64_t stop = std::max(begin, next->span.first);
    if (!sound_) return look_through_last(stop, end, out);
    for (auto span = doubtful_.rbegin(); span != doubtful_.rend(); ++span) {
      if (span->first >= end) continue;
      if (span->last + 1 >= end) return look_through_last(std::max(stop, span->first), end, out);
      stop = std::max(stop, span->last + 1);
      break;
    }
    return look_up(*next, stop, end, out);
  }

  // Reads what a chunk has of the tags, and of which of its positions that may not be all.
  int open(const StoredChunk& chunk) {
    if (opened_ == &chunk) return 0;
    opened_ = &chunk;
    places_.clear();
    sound_ = true;
    doubtful_ = doubtful(chunk);
    return read_places(object_, chunk, request_.tags, &places_, &sound_);
  }

  // Looks through the last positions of [begin, end). In reverse a part that was cut off at its end
  // would be the wrong one: then it tries fewer, going by how many it came through.
  int look_through_last(uint64_t begin, uint64_t end, Found* out) {
    while (true) {
      *out = Found();
      const uint64_t from = end - begin > reverse_part_ ? end - reverse_part_ : begin;
      uint64_t first_record = end;
      ZLOG_TRY(look_through(from, end, out, &first_record));
      if (out->end == end) {
        reverse_part_ = reverse_part_ > UINT64_MAX / 4 ? UINT64_MAX : reverse_part_ * 4;
        return 0;
      }
      const bool late = bytes_looked_at_ >= limits::walk_bytes_enough;
      const uint64_t through = out->end - std::min(first_record, out->end);
      reverse_part_ = late ? 1 : std::max<uint64_t>(through / 2, 1);
    }
  }

  // Looks at each record of [begin, end), or of a part that a bounded number of bytes goes to.
  int look_through(uint64_t begin, uint64_t end, Found* out, uint64_t* first_record = nullptr) {
    out->begin = begin;
    out->end = end;
    const uint64_t limit = std::min(end, records_end_);
    RecordIterator records(object_, header_, limits::page_records_max);
    uint64_t next = header_.first_at(begin);
    while (next < limit) {
      if (records.bytes_fetched() >= limits::walk_bytes_enough / 2 ||
          out->gaps.size() >= limits::select_gaps_max / 2 ||
          out->hits.size() >= limits::entries_max) {
        out->end = next;
        break;
      }
      const Stored* stored = nullptr;
      ZLOG_TRY(records.seek(next, &stored));
      const uint64_t gap_end = stored == nullptr ? limit : std::min(stored->span.first, limit);
      if (next < gap_end) note_gap(next, gap_end, &out->gaps);
      next = std::max(next, header_.first_at(gap_end));
      if (stored == nullptr || next >= limit) break;
      if (first_record != nullptr) *first_record = std::min(*first_record, next);
      look_at(*stored, next, limit, out);
      next = spacing_.next(stored->span.last);
    }
    bytes_looked_at_ += records.bytes_fetched();
    return 0;
  }

  void look_at(const Stored& stored, uint64_t begin, uint64_t end, Found* out) {
    const Record& record = stored.record;
    const uint64_t last = std::min(stored.span.last, spacing_.before(header_.first_at(end), 1));
    if (record.kind == RecordKind::kLost || record.unreadable()) {
      const EntryState state = record.unreadable() ? EntryState::kUnreadable : EntryState::kLost;
      out->gaps.push_back({begin, last, state});
    }
    if (!record.holds_entries() || !record.tags.any()) return;
    const uint32_t from = spacing_.index(stored.span, begin);
    const uint32_t to = spacing_.index(stored.span, last) + 1;
    const TagsReader tags(record.tags);
    for (const uint32_t i : wanted_.among(tags, from, to)) {
      if (!record.written(i)) continue;
      const std::string_view tag = tags.names()[record.tags.ids[tags.begin_of(i)]];
      const uint64_t position = spacing_.after(stored.span.first, i);
      const TagPlace place = place_of(record, i, tags);
      out->hits.push_back(hit_of(position, place, place.alone ? tag : request_.tags.front()));
    }
  }

  // What [begin, end), where there is no record, is: holes, and lost between them.
  void note_gap(uint64_t begin, uint64_t end, std::vector<SelectGap>* gaps) {
    uint64_t next = begin;
    while (next < end) {
      const uint64_t hole = std::min(header_.first_at(header_.holes.next(next)), end);
      if (next < hole) add_gap(next, hole, EntryState::kLost, gaps);
      if (hole >= end) return;
      const auto run = std::find_if(header_.holes.runs.begin(), header_.holes.runs.end(),
                                    [&](const Hole& each) { return each.covers(hole); });
      const uint64_t hole_end =
          run == header_.holes.runs.end() ? end : std::min(header_.first_at(run->last + 1), end);
      add_gap(hole, hole_end, EntryState::kUnwritten, gaps);
      next = hole_end;
    }
  }

  // Notes the object's positions of [begin, end), of which `begin` is one.
  void add_gap(uint64_t begin, uint64_t end, EntryState state, std::vector<SelectGap>* gaps) {
    gaps->push_back({begin, spacing_.before(header_.first_at(end), 1), state});
  }

  void note_trimmed(uint64_t start) {
    const uint64_t first = header_.first_at(request_.start);
    const uint64_t end = header_.first_at(std::min(start, request_.end));
    if (first < end) gaps_.push_back({first, spacing_.before(end, 1), EntryState::kTrimmed});
  }

  // What a chunk's places tell of [begin, end). A bucket that was not made here may have them in any
  // order.
  int look_up(const StoredChunk& chunk, uint64_t begin, uint64_t end, Found* out) {
    out->begin = begin;
    out->end = end;
    take(chunk, places_, begin, end, &out->hits);
    const auto below = [](const Hit& a, const Hit& b) { return a.position < b.position; };
    const auto same = [](const Hit& a, const Hit& b) { return a.position == b.position; };
    std::stable_sort(out->hits.begin(), out->hits.end(), below);
    out->hits.erase(std::unique(out->hits.begin(), out->hits.end(), same), out->hits.end());
    return 0;
  }

  // The runs of a chunk of which the index may not tell, joined and ascending.
  std::vector<Span> doubtful(const StoredChunk& chunk) const {
    std::vector<Span> spans(chunk.chunk.unknown.begin(), chunk.chunk.unknown.end());
    for (const Hole& hole : header_.holes.runs) {
      if (hole.first <= chunk.span.last && hole.last >= chunk.span.first) spans.push_back(hole);
    }
    if (header_.holes.accounted <= chunk.span.last) {
      spans.push_back({std::max(header_.holes.accounted, chunk.span.first), chunk.span.last});
    }
    std::sort(spans.begin(), spans.end(),
              [](const Span& a, const Span& b) { return a.first < b.first; });
    std::vector<Span> joined;
    for (const Span& span : spans) {
      if (!joined.empty() && span.first <= joined.back().last) {
        joined.back().last = std::max(joined.back().last, span.last);
      } else {
        joined.push_back(span);
      }
    }
    return joined;
  }

  // The places of [begin, end) that have any of the tags, or all.
  void take(const StoredChunk& chunk, const TagPlaces& places, uint64_t begin, uint64_t end,
            std::vector<Hit>* out) const {
    if (request_.all) {
      for (const std::string& tag : request_.tags) {
        if (places.find(tag) == places.end()) return;
      }
    }
    struct Candidate {
      const TagPlace* place = nullptr;
      std::string_view tag;
      size_t times = 0;
    };
    std::map<uint32_t, Candidate> candidates;
    for (const auto& [tag, all] : places) {
      for (const TagPlace& place : all) {
        const uint64_t position = spacing_.after(chunk.span.first, place.index);
        if (position < begin || position >= end) continue;
        if (places.size() == 1) {
          out->push_back(hit_of(position, place, tag));
          continue;
        }
        Candidate& candidate = candidates[place.index];
        if (candidate.times++ == 0) candidate = {&place, tag, 1};
      }
    }
    for (const auto& [index, found] : candidates) {
      if (request_.all && found.times < places.size()) continue;
      out->push_back(hit_of(spacing_.after(chunk.span.first, index), *found.place, found.tag));
    }
  }

  // The same name, where it stays.
  std::string_view tag_of(std::string_view name) const {
    return *std::find(request_.tags.begin(), request_.tags.end(), name);
  }

  Hit hit_of(uint64_t position, const TagPlace& place, std::string_view tag) const {
    Hit hit;
    hit.position = position;
    hit.place = place;
    hit.tag = tag_of(tag);
    hit.direct = place.offset != TagPlace::kInRecord && place.alone && place.bytes > 0 &&
                 !request_.with_ids && reply_.takes_data();
    return hit;
  }

  // Answers with what was found, as far as it fits: then `found` is about that part.
  int answer(Found* found) {
    std::vector<Hit>& hits = found->hits;
    const size_t room = request_.entries_max - positions_.size();
    if (hits.size() > room) {
      if (request_.reverse) {
        found->begin = hits[hits.size() - room - 1].position + 1;
        hits.erase(hits.begin(), hits.end() - static_cast<std::ptrdiff_t>(room));
      } else {
        found->end = hits[room].position;
        hits.resize(room);
      }
    }
    if (request_.reverse) std::reverse(hits.begin(), hits.end());
    size_t fit = 0;
    ZLOG_TRY(read_direct(&hits, &fit));
    size_t i = 0;
    while (i < fit && !full_) {
      size_t taken = 0;
      ZLOG_TRY(hits[i].direct ? answer_direct(&hits[i], &taken) : answer_stored(hits, i, &taken));
      i += taken;
    }
    if (i < hits.size()) {
      full_ = true;
      if (request_.reverse) {
        found->begin = hits[i].position + 1;
      } else {
        found->end = hits[i].position;
      }
    }
    for (const SelectGap& gap : found->gaps) {
      const uint64_t first = std::max(gap.first, header_.first_at(found->begin));
      const uint64_t end = header_.first_at(std::min(spacing_.next(gap.last), found->end));
      if (first < end) add_gap(first, end, gap.state, &gaps_);
    }
    return 0;
  }

  // Reads the data of those whose place is known, as long as the reply has room for it; `fit`: how many
  // hits it came through. What the entry's checksum does not fit has been trimmed since, or is damaged:
  // the record tells. So it does of zeros, which is what is left where data was trimmed.
  int read_direct(std::vector<Hit>* hits, size_t* fit) {
    uint64_t bytes = reply_.data_bytes();
    for (*fit = 0; *fit < hits->size(); ++*fit) {
      Hit& hit = (*hits)[*fit];
      if (!hit.direct) continue;
      bytes += hit.place.bytes;
      if (bytes > bytes_max() && *fit > 0) break;
      std::string data;
      ZLOG_TRY(object_.read(hit.place.offset, hit.place.bytes, &data));
      hit.direct = data.size() == hit.place.bytes &&
                   data.find_first_not_of('\0') != std::string::npos &&
                   entry_crc(hit.position, data) == hit.place.crc;
    }
    return 0;
  }

  uint64_t bytes_max() const { return std::min(request_.bytes_max, limits::read_reply_bytes_max); }

  int answer_direct(Hit* hit, size_t* taken) {
    full_ = !positions_.empty() && reply_.data_bytes() + hit->place.bytes > bytes_max();
    if (full_) return 0;
    ReadEntry entry;
    entry.state = EntryState::kWritten;
    entry.timestamp = hit->place.timestamp;
    entry.crc = hit->place.crc;
    positions_.push_back(hit->position);
    reply_.builder().add(entry, hit->place.bytes, hit->tag);
    *taken = 1;
    full_ = reply_.full();
    uint64_t there = 0;
    ZLOG_TRY(object_.answer_stream(hit->place.offset, hit->place.bytes, &there));
    return there == hit->place.bytes ? 0 : -EIO;  // they were there a moment ago
  }

  // Those from the i-th on that their records tell of.
  int answer_stored(const std::vector<Hit>& hits, size_t i, size_t* taken) {
    std::vector<uint64_t> positions;
    const auto joins = [&](size_t next) { return next < hits.size() && !hits[next].direct; };
    for (size_t next = i; joins(next); next++) positions.push_back(hits[next].position);
    const uint32_t before = reply_.count();
    Scan<Answering> scan(object_, header_, positions, request_.bytes_max, &reply_, &blocks_);
    ZLOG_TRY(scan.run());
    bytes_looked_at_ += scan.bytes_fetched();
    *taken = reply_.count() - before;
    full_ =
        *taken < positions.size() || reply_.full() || bytes_looked_at_ >= limits::walk_bytes_enough;
    positions_.insert(positions_.end(), positions.begin(),
                      positions.begin() + static_cast<std::ptrdiff_t>(*taken));
    return 0;
  }

  Object& object_;
  Header& header_;
  const SelectRequest& request_;
  const Spacing spacing_;
  const TagsWanted wanted_;
  const uint64_t records_end_;  // what the header does not know of was not stored by a method
  Answering reply_;
  std::vector<StoredChunk> chunks_;
  std::vector<uint64_t> positions_;
  std::vector<SelectGap> gaps_;
  const StoredChunk* opened_ = nullptr;
  TagPlaces places_;  // of the opened one
  bool sound_ = true;
  std::vector<Span> doubtful_;
  BlocksSeen blocks_;
  uint64_t bytes_looked_at_ = 0;
  uint64_t reverse_part_ = UINT64_MAX;  // positions that a look through the last ones takes on
  bool full_ = false;
};

}  // namespace

Result<SelectReplyBuilder> select(Object& object, const SelectRequest& request) {
  Header header;
  ZLOG_TRY(Header::load(object, &header));
  ZLOG_TRY(header.admit(request.epoch));
  return Selection(object, header, request).run();
}

}  // namespace zlog::stripe
