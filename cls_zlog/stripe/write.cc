#include <algorithm>
#include <optional>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/stripe/scan.h"
#include "cls_zlog/stripe/tag_index.h"

namespace zlog::stripe {
namespace {

// What a write or fill found at its positions.
struct Claims {
  std::vector<uint32_t> open;  // the positions (as indices) that nothing was ever stored at
  Failure blocked;             // by the first position that is taken by something else
  Failure unknown;             // the first of these that may hold what was to be written
  Failure alike;               // the first that may, as far as can be told without decompressing

  void block(Code code, uint64_t position) {
    if (blocked.code == kOk) blocked = {code, position};
    if (unknown.code == kOk && code != kReadOnly) unknown = {code, position};
  }
};

// Goes over all positions and sorts them into claims: `judge(stretch, claims)` does it for those
// that may be taken. Above the highest position that is, everything is open and no record need be
// read.
template <typename Judge>
int sort_claims(Object& object, const Header& header, const std::vector<uint64_t>& positions,
                const Judge& judge, Claims* claims) {
  const std::optional<uint64_t> taken = header.taken();
  auto fresh = positions.begin();
  if (taken) fresh = std::upper_bound(fresh, positions.end(), *taken);
  const std::vector<uint64_t> old(positions.begin(), fresh);
  Walk walk(object, header, old);
  while (!walk.done()) {
    Walk::Stretch stretch;
    ZLOG_TRY(walk.next(&stretch));
    ZLOG_TRY(judge(stretch, claims));
  }
  for (size_t i = old.size(); i < positions.size(); i++) {
    claims->open.push_back(static_cast<uint32_t>(i));
  }
  return 0;
}

// Why what is stored keeps others out. Of what is damaged nothing is known: it may be the very entry
// that is written again.
Code blocking_code(const Stored& stored) {
  if (stored.record.kind == RecordKind::kLost) return kLost;
  return stored.record.unreadable() ? kUnreadable : kReadOnly;
}

// The blocks of a compressed request, one after the other.
class Blocks {
 public:
  explicit Blocks(const WriteRequest& request) : request_(request) { take(); }

  // Goes on to the one that holds the i-th entry, which never falls.
  void seek(uint32_t i) {
    while (i >= end_) {
      begin_ = end_;
      at_ += request_.blocks[block_++].stored_bytes;
      take();
    }
  }
  uint32_t begin() const { return begin_; }
  uint32_t end() const { return end_; }  // one past its last entry
  std::string_view data() const { return request_.data.substr(at_, stored().stored_bytes); }
  bool intact() const { return crc32c(data()) == stored().crc; }

  // Whether entry i has the place in its block that entry `index` of a record has in that one's.
  bool same_place(uint32_t i, const Record& record, uint32_t index) const {
    const Block own = at(i);
    const Block& other = record.block;
    return own.compression == other.compression && own.plain_bytes == other.plain_bytes &&
           own.stored_bytes == other.stored_bytes && own.crc == other.crc &&
           own.skip == other.skip + record.begin_of(index);
  }

  // Whether the block is the one that was found; damaged, it is by the checksum of what it was.
  bool same_bytes(std::string_view found) const {
    return found == data() || crc32c(found) != stored().crc;
  }

  // As it is in a record that begins with that entry.
  Block at(uint32_t i) const {
    const uint32_t from = request_.begin_of(begin_);
    return {request_.compression, request_.ends[end_ - 1] - from, request_.begin_of(i) - from,
            stored().stored_bytes, stored().crc};
  }

 private:
  const WriteBlock& stored() const { return request_.blocks[block_]; }
  void take() { end_ = begin_ + stored().entries; }

  const WriteRequest& request_;
  size_t block_ = 0;
  uint64_t at_ = 0;  // where its data begins
  uint32_t begin_ = 0;
  uint32_t end_ = 0;
};

// Of a block the class can only tell that it is what the writer made: its entries' checksums are for
// those who decompress it.
bool intact(const WriteRequest& request, const std::vector<uint64_t>& positions) {
  if (request.compressed()) {
    Blocks blocks(request);
    for (uint32_t i = 0; i < positions.size(); i = blocks.end()) {
      blocks.seek(i);
      if (!blocks.intact()) return false;
    }
    return true;
  }
  for (uint32_t i = 0; i < positions.size(); i++) {
    if (entry_crc(positions[i], request.data_of(i)) != request.crcs[i]) return false;
  }
  return true;
}

// Whether the i-th entry of the request is the record's at `index`, by all that the record tells of
// it.
bool alike(const WriteRequest& request, uint32_t i, const Record& record, uint32_t index) {
  return record.holds_entries() && record.origin.writer == request.writer &&
         record.origin.number + record.numbers[index] == request.number_of(i) &&
         record.crcs[index] == request.crcs[i] &&
         (!record.written(index) || record.bytes_of(index) == request.bytes_of(i));
}

// Whether entries that are alike have the same tags. A trimmed one has lost them.
class TagsComparison {
 public:
  TagsComparison(const TagsReader& sent, const Record& record) : sent_(sent), record_(record) {
    if (sent.tags().any() || record.tags.any()) stored_.emplace(record.tags);
  }
  bool same(uint32_t i, uint32_t index) const {
    if (!stored_.has_value() || !record_.written(index)) return true;
    return sent_.of(i) == stored_->of(index);
  }

 private:
  const TagsReader& sent_;
  const Record& record_;
  std::optional<TagsReader> stored_;  // if there, or there, are any
};

// Tells of entries that are alike, where data is compressed, here or there, whether they are the same.
class Comparison {
 public:
  Comparison(Layout* layout, const Stored& stored, Blocks* blocks)
      : layout_(layout), stored_(stored), blocks_(blocks) {}

  // Whether entry i, which never falls, and the record's `index` are in one place of the same block.
  int same(uint32_t i, uint32_t index, bool* out) {
    *out = false;
    if (blocks_ == nullptr || !stored_.record.compressed()) return 0;
    blocks_->seek(i);
    if (!blocks_->same_place(i, stored_.record, index)) return 0;
    if (compared_ != blocks_->begin()) {
      std::string buffer;
      std::string_view found;
      ZLOG_TRY(layout_->block_of(stored_, &buffer, &found));
      compared_ = blocks_->begin();
      same_ = blocks_->same_bytes(found);
    }
    *out = same_;
    return 0;
  }

 private:
  Layout* const layout_;
  const Stored& stored_;
  Blocks* const blocks_;
  uint32_t compared_ = UINT32_MAX;  // where the block begins that was, last
  bool same_ = false;
};

// Sorts out positions that a record covers. Passed over are entries that are there already: the
// same append with the same data, be it damaged or trimmed since. Readers learn the ids of appends,
// so another writer may have stored other data under this one's; such an entry is as foreign as
// any. Where data is compressed, here or there, only the same block tells without decompressing.
int sort_covered(Layout* layout, const Header& header, const WriteRequest& request,
                 const TagsReader& sent_tags, const std::vector<uint64_t>& positions,
                 const Walk::Stretch& stretch, Blocks* blocks, Claims* claims) {
  const Stored& stored = *stretch.stored;
  const Record& record = stored.record;
  const bool comparable = blocks == nullptr && !record.compressed();
  const Spacing spacing = header.spacing();
  Comparison comparison(layout, stored, blocks);
  const TagsComparison tags(sent_tags, record);
  const auto is_alike = [&](uint32_t i, uint32_t at) {
    return alike(request, i, record, at) && tags.same(i, at);
  };
  for (uint32_t i = stretch.begin; i < stretch.end;) {
    const uint32_t index = spacing.index(stored.span, positions[i]);
    uint32_t count = 0;  // entries in a row that are alike, and whose data is there to be compared
    while (comparable && i + count < stretch.end &&
           positions[i + count] == spacing.after(positions[i], count) &&
           is_alike(i + count, index + count) && record.written(index + count)) {
      count++;
    }
    if (count == 0) {
      if (!is_alike(i, index)) {
        claims->block(blocking_code(stored), positions[i]);
      } else if (record.written(index) && positions[i] >= header.trim_point) {
        bool same = false;
        ZLOG_TRY(comparison.same(i, index, &same));
        if (!same && claims->alike.code == kOk) claims->alike = {kAlike, positions[i]};
      }
      i++;
      continue;
    }
    std::string buffer;
    std::string_view data;
    ZLOG_TRY(layout->data_of(stored, index, index + count, &buffer, &data));
    for (const uint32_t end = i + count; i < end; i++) {
      const std::string_view found = data.substr(0, request.data_of(i).size());
      const bool other = found != request.data_of(i);
      if (other && entry_crc(positions[i], found) == request.crcs[i]) {
        claims->block(kReadOnly, positions[i]);
      }
      data.remove_prefix(found.size());
    }
  }
  return 0;
}

// Entries [begin, end) of the request, which are at positions in a row; of compressed ones, as many
// as are in the block. `kept` keeps the tags where they are not all that the request has.
Batch batch_of(const WriteRequest& request, const std::vector<uint64_t>& positions, uint32_t begin,
               uint32_t end, const Blocks* blocks, const TagsReader& tags, TagsBuilder* kept) {
  if (blocks != nullptr) end = std::min(end, blocks->end());
  Batch batch;
  batch.origin = {request.timestamp, request.writer, request.number};
  batch.first = positions[begin];
  batch.entries.reserve(end - begin);
  for (uint32_t i = begin; i < end; i++) {
    batch.entries.push_back(
        {EntryState::kWritten, request.bytes_of(i), request.crcs[i], request.numbers[i]});
  }
  if (end - begin == positions.size()) {
    batch.tags = request.tags;
  } else if (request.tags.any()) {
    kept->add(tags, begin, end);
    batch.tags = kept->tags();
  }
  const uint32_t from = request.begin_of(begin);
  batch.data_bytes = request.ends[end - 1] - from;
  if (blocks != nullptr) {
    batch.block = blocks->at(begin);
    batch.data = blocks->data();
    batch.beside = request.data.size() - batch.data.size();
  } else {
    batch.data = request.data.substr(from, batch.data_bytes);
  }
  return batch;
}

// Notes the tags of the entries that were stored.
int index(Object& object, Header* header, const std::vector<uint64_t>& positions,
          const TagsReader& tags, const std::vector<uint32_t>& open) {
  std::vector<uint64_t> stored;
  std::vector<uint32_t> which;
  for (const uint32_t i : open) {
    if (tags.count_of(i) == 0) continue;
    stored.push_back(positions[i]);
    which.push_back(i);
  }
  return stored.empty() ? 0 : add_tags(object, header, stored, tags, which);
}

int store(Object& object, Header* header, const WriteRequest& request, const TagsReader& tags,
          const std::vector<uint64_t>& positions, const std::vector<uint32_t>& open) {
  Layout layout(object, *header);
  const Spacing spacing = header->spacing();
  std::optional<Blocks> blocks;
  if (request.compressed()) blocks.emplace(request);
  const bool tagged = header->tagged || request.tags.any();
  if (tagged) ZLOG_TRY(make_chunks(object, header, positions[open.front()]));
  const uint64_t records = header->records;
  uint64_t data_bytes = 0;
  for (size_t i = 0; i < open.size();) {
    const uint32_t begin = open[i];
    uint32_t end = begin + 1;
    const auto goes_on = [&] {
      return i < open.size() && open[i] == end &&
             positions[end] == spacing.next(positions[end - 1]);
    };
    for (i++; goes_on(); i++) end++;
    for (uint32_t at = begin; at < end;) {
      if (blocks) blocks->seek(at);
      TagsBuilder kept;
      const Batch batch =
          batch_of(request, positions, at, end, blocks ? &*blocks : nullptr, tags, &kept);
      // A block is stored anew for each row of positions in it, which must not multiply a request.
      data_bytes += batch.data.size();
      if (data_bytes > limits::request_bytes_max) return -E2BIG;
      ZLOG_TRY(layout.append(batch));
      at += static_cast<uint32_t>(batch.entries.size());
    }
    header->use({positions[begin], positions[end - 1]});
  }
  if (tagged) header->loose_records += static_cast<uint32_t>(header->records - records);
  if (request.tags.any()) ZLOG_TRY(index(object, header, positions, tags, open));
  return header->save(object);
}

}  // namespace

Result<Fullness> write(Object& object, const WriteRequest& request) {
  const std::vector<uint64_t> positions = request.runs.positions();
  if (!intact(request, positions)) return Failure{-EINVAL};
  Header header;
  ZLOG_TRY(Header::load(object, &header));
  if (!header.owns(request.runs)) return Failure{-EINVAL};

  Layout layout(object, header);
  std::optional<Blocks> blocks;
  if (request.compressed()) blocks.emplace(request);
  const TagsReader tags(request.tags);
  const auto judge = [&](const Walk::Stretch& stretch, Claims* claims) {
    if (stretch.stored != nullptr) {
      return sort_covered(&layout, header, request, tags, positions, stretch,
                          blocks ? &*blocks : nullptr, claims);
    }
    for (uint32_t i = stretch.begin; i < stretch.end; i++) {
      if (header.lost(positions[i])) {
        claims->block(kLost, positions[i]);
      } else if (positions[i] < header.trim_point) {
        claims->block(kReadOnly, positions[i]);
      } else {
        claims->open.push_back(i);
      }
    }
    return 0;
  };
  Claims claims;
  ZLOG_TRY(sort_claims(object, header, positions, judge, &claims));
  ZLOG_TRY(claims.alike);
  if (claims.open.empty() && claims.blocked.code == kOk) return header.fullness();
  ZLOG_TRY(claims.unknown);
  ZLOG_TRY(header.admit(request.epoch));
  ZLOG_TRY(claims.blocked);
  ZLOG_TRY(header.take(positions[claims.open.back()]));
  ZLOG_TRY(store(object, &header, request, tags, positions, claims.open));
  return header.fullness();
}

Result<Empty> fill(Object& object, const FillRequest& request) {
  Header header;
  ZLOG_TRY(enter(object, request.epoch, request.runs, &header));
  const std::vector<uint64_t> positions = request.runs.positions();
  const auto judge = [&](const Walk::Stretch& stretch, Claims* claims) {
    const Stored* const stored = stretch.stored;
    for (uint32_t i = stretch.begin; i < stretch.end; i++) {
      const uint64_t position = positions[i];
      if (position < header.trim_point) continue;
      if (stored == nullptr && header.lost(position)) {
        claims->block(kLost, position);
        continue;
      }
      if (stored == nullptr) {
        claims->open.push_back(i);
        continue;
      }
      const uint32_t index = header.spacing().index(stored->span, position);
      const EntryState state = stored->record.state_of(index);
      if (state != EntryState::kFilled && state != EntryState::kTrimmed) {
        claims->block(blocking_code(*stored), position);
      }
    }
    return 0;
  };
  Claims claims;
  ZLOG_TRY(sort_claims(object, header, positions, judge, &claims));
  ZLOG_TRY(claims.blocked);
  if (claims.open.empty()) return Empty();
  std::vector<uint64_t> holes;
  holes.reserve(claims.open.size());
  for (const uint32_t i : claims.open) holes.push_back(positions[i]);
  ZLOG_TRY(header.take(holes.back()));
  Layout layout(object, header);
  for (const Span& span : spans_of(holes, header.spacing())) {
    ZLOG_TRY(layout.put_fill(span, {request.timestamp, request.writer, 0}, request.reason));
    header.use(span);
  }
  ZLOG_TRY(header.save(object));
  return Empty();
}

}  // namespace zlog::stripe
