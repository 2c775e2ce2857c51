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
  std::string data;      // read at the place; only what the entry's checksum fits counts
  bool direct = false;
};

// What was found in positions in a row.
struct Found {
  std::vector<Hit> hits;        // ascending, each position once
  std::vector<SelectGap> gaps;  // ascending
  uint64_t begin = 0;           // it is about [begin, end)
  uint64_t end = 0;
};

class Selection {
 public:
  Selection(Object& object, Header& header, const SelectRequest& request)
      : object_(object),
        header_(header),
        request_(request),
        spacing_(header.spacing()),
        wanted_(request.tags, request.all),
        records_end_(header.highest ? *header.highest + 1 : 0),
        reply_(object, header, true,
               ReadReplyBuilder(header.taken(), request.with_ids, 0, true)) {}

  Result<SelectReplyBuilder> run() {
    const uint64_t start = std::max(request_.start, header_.trim_point);
    const uint64_t end = std::max(start, request_.end);
    ZLOG_TRY(list_chunks(object_, header_, start, std::min(end, records_end_), &chunks_));
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
      if (reached == goal) reached = request_.reverse ? request_.start : request_.end;
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
  // The next part from a position on: what is left of a chunk, or what lies before the next one.
  int part_from(uint64_t begin, uint64_t end, Found* out) {
    const auto next = std::find_if(chunks_.begin(), chunks_.end(),
                                   [&](const StoredChunk& c) { return c.span.last >= begin; });
    if (next == chunks_.end()) return look_through(begin, end, out);
    if (next->span.first > begin) {
      return look_through(begin, std::min(end, next->span.first), out);
    }
    return look_up(*next, begin, std::min(end, next->span.last + 1), out);
  }

  // The same downwards.
  int part_below(uint64_t begin, uint64_t end, Found* out) {
    const auto next = std::find_if(chunks_.rbegin(), chunks_.rend(),
                                   [&](const StoredChunk& c) { return c.span.first < end; });
    if (next == chunks_.rend()) return look_through_last(begin, end, out);
    if (next->span.last + 1 < end) {
      return look_through_last(std::max(begin, next->span.last + 1), end, out);
    }
    return look_up(*next, std::max(begin, next->span.first), end, out);
  }

  // Looks through all of it: in reverse a part that was cut off would be the wrong one.
  int look_through_last(uint64_t begin, uint64_t end, Found* out) {
    ZLOG_TRY(look_through(begin, end, out));
    while (out->end < end) {
      Found rest;
      ZLOG_TRY(look_through(out->end, end, &rest));
      std::move(rest.hits.begin(), rest.hits.end(), std::back_inserter(out->hits));
      std::move(rest.gaps.begin(), rest.gaps.end(), std::back_inserter(out->gaps));
      out->end = rest.end;
    }
    return 0;
  }

  // Looks at each record of [begin, end), or of a part that a bounded number of bytes goes to.
  int look_through(uint64_t begin, uint64_t end, Found* out) {
    out->begin = begin;
    out->end = end;
    const uint64_t limit = std::min(end, records_end_);
    RecordIterator records(object_, header_, limits::page_records_max);
    uint64_t next = header_.first_at(begin);
    while (next < limit) {
      if (records.bytes_fetched() >= limits::walk_bytes_enough / 2) {
        out->end = next;
        break;
      }
      const Stored* stored = nullptr;
      ZLOG_TRY(records.seek(next, &stored));
      const uint64_t gap_end = stored == nullptr ? limit : std::min(stored->span.first, limit);
      if (next < gap_end) note_gap(next, gap_end, &out->gaps);
      next = std::max(next, header_.first_at(gap_end));
      if (stored == nullptr || next >= limit) break;
      look_at(*stored, next, limit, out);
      next = spacing_.next(stored->span.last);
    }
    bytes_looked_at_ += records.bytes_fetched();
    return 0;
  }

  void look_at(const Stored& stored, uint64_t begin, uint64_t end, Found* out) {
    const Record& record = stored.record;
    const uint64_t last =
        std::min(stored.span.last, spacing_.before(header_.first_at(end), 1));
    if (record.kind == RecordKind::kLost || record.unreadable()) {
      const EntryState state =
          record.unreadable() ? EntryState::kUnreadable : EntryState::kLost;
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
      const uint64_t hole_end = run == header_.holes.runs.end()
                                    ? end
                                    : std::min(header_.first_at(run->last + 1), end);
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

  // Looks up a chunk's part [begin, end). Positions that may be unwritten, or could not be read when
  // the chunk was made, are looked through.
  int look_up(const StoredChunk& chunk, uint64_t begin, uint64_t end, Found* out) {
    TagPlaces places;
    bool sound = true;
    ZLOG_TRY(read_places(object_, chunk, request_.tags, &places, &sound));
    if (!sound) {
      return request_.reverse ? look_through_last(begin, end, out) : look_through(begin, end, out);
    }
    out->begin = begin;
    out->end = end;
    take(chunk, places, begin, end, &out->hits);
    for (const Span& span : doubtful(chunk)) {
      const uint64_t first = std::max(begin, span.first);
      const uint64_t last_end = std::min(end, span.last + 1);
      if (first >= last_end) continue;
      Found found;
      ZLOG_TRY(look_through_last(first, last_end, &found));
      std::move(found.hits.begin(), found.hits.end(), std::back_inserter(out->hits));
      std::move(found.gaps.begin(), found.gaps.end(), std::back_inserter(out->gaps));
    }
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
                 !request_.with_ids;
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
    ZLOG_TRY(read_direct(&hits));
    for (size_t i = 0; i < hits.size() && !full_;) {
      size_t taken = 0;
      ZLOG_TRY(hits[i].direct ? answer_direct(&hits[i], &taken) : answer_stored(hits, i, &taken));
      i += taken;
      if (i == hits.size() || !full_) continue;
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

  // Reads the data of those whose place is known, all of them before any is looked at. What the
  // entry's checksum does not fit has been trimmed since, or is damaged: the record tells. So it does
  // of zeros, which is what is left where data was trimmed.
  int read_direct(std::vector<Hit>* hits) {
    uint64_t bytes = reply_.data_bytes();
    for (Hit& hit : *hits) {
      if (!hit.direct) continue;
      bytes += hit.place.bytes;
      if (bytes > bytes_max() && hit.position != hits->front().position) return 0;
      ZLOG_TRY(object_.read(hit.place.offset, hit.place.bytes, &hit.data));
    }
    for (Hit& hit : *hits) {
      hit.direct = hit.direct && hit.data.size() == hit.place.bytes &&
                   hit.data.find_first_not_of('\0') != std::string::npos &&
                   entry_crc(hit.position, hit.data) == hit.place.crc;
    }
    return 0;
  }

  uint64_t bytes_max() const { return std::min(request_.bytes_max, limits::read_reply_bytes_max); }

  int answer_direct(Hit* hit, size_t* taken) {
    full_ = !positions_.empty() && reply_.data_bytes() + hit->data.size() > bytes_max();
    if (full_) return 0;
    ReadEntry entry;
    entry.state = EntryState::kWritten;
    entry.timestamp = hit->place.timestamp;
    entry.crc = hit->place.crc;
    positions_.push_back(hit->position);
    reply_.builder().add(entry, hit->place.bytes, hit->tag);
    *taken = 1;
    return object_.answer(Buffer::of(std::move(hit->data)));
  }

  // Those from the i-th on that their records tell of; in reverse one.
  int answer_stored(const std::vector<Hit>& hits, size_t i, size_t* taken) {
    std::vector<uint64_t> positions;
    const auto joins = [&](size_t next) {
      return next < hits.size() && !hits[next].direct && (next == i || !request_.reverse);
    };
    for (size_t next = i; joins(next); next++) positions.push_back(hits[next].position);
    const uint32_t before = reply_.count();
    Scan<Answering> scan(object_, header_, positions, request_.bytes_max, &reply_);
    ZLOG_TRY(scan.run());
    *taken = reply_.count() - before;
    full_ = *taken < positions.size();
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
  uint64_t bytes_looked_at_ = 0;
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
