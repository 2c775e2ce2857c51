#include <algorithm>
#include <optional>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/stripe/scan.h"
#include "cls_zlog/stripe/tag_index.h"

namespace zlog::stripe {
namespace {

// What a write or fill found at its positions.
struct Claims {
  std::vector<uint32_t> open;  // indices of unwritten positions
  Failure blocked;             // the first position taken by something else
  Failure unknown;             // the first taken position that may hold the same entry
  Failure same_id;             // the first whose compressed data has to be compared

  // Claims a position without a record.
  void claim(uint32_t i, uint64_t position, bool lost) {
    if (lost) return block(kLost, position);
    open.push_back(i);
  }
  void block(Code code, uint64_t position) {
    if (blocked.code == kOk) blocked = {code, position};
    if (unknown.code == kOk && code != kReadOnly) unknown = {code, position};
  }
};

// Sorts all positions into claims. All positions above the highest one in use are open;
// decide(stretch, claims) sorts the others.
template <typename Decide>
int sort_claims(Object& object, const Header& header, const std::vector<uint64_t>& positions,
                const Decide& decide, Claims* claims) {
  const std::optional<uint64_t> taken = header.taken();
  auto fresh = positions.begin();
  if (taken) fresh = std::upper_bound(fresh, positions.end(), *taken);
  const std::vector<uint64_t> old(positions.begin(), fresh);
  Walk walk(object, header, old);
  while (!walk.done()) {
    Walk::Stretch stretch;
    ZLOG_TRY(walk.next(&stretch));
    ZLOG_TRY(decide(stretch, claims));
  }
  for (size_t i = old.size(); i < positions.size(); i++) {
    claims->open.push_back(static_cast<uint32_t>(i));
  }
  return 0;
}

// Returns why a stored record blocks a position. A damaged record may have the same entry.
Code blocking_code(const Stored& stored) {
  if (stored.record.kind == RecordKind::kLost) return kLost;
  return stored.record.unreadable() ? kUnreadable : kReadOnly;
}

// A block of a compressed request.
struct SentBlock {
  uint32_t begin = 0;  // its entries
  uint32_t end = 0;
  std::string_view data;
  Block block;  // of a record that begins with its first entry

  // The block of a record that begins with entry i.
  Block at(const WriteRequest& request, uint32_t i) const {
    Block part = block;
    part.skip = request.begin_of(i) - request.begin_of(begin);
    return part;
  }
  // Returns whether a stored block is this one. A damaged block counts as the same, because its
  // header has the same checksum.
  bool same_bytes(std::string_view found) const {
    return found == data || crc32c(found) != block.crc;
  }
};

// A request with its positions, tags and blocks.
struct Write {
  explicit Write(const WriteRequest& sent_request)
      : request(sent_request), positions(request.runs.positions()), tags(request.tags) {
    uint32_t begin = 0;
    uint64_t at = 0;
    for (const WriteBlock& sent : request.blocks) {
      const uint32_t end = begin + sent.entries;
      const uint32_t plain_bytes = request.ends[end - 1] - request.begin_of(begin);
      blocks.push_back({begin,
                        end,
                        request.data.substr(at, sent.stored_bytes),
                        {request.compression, plain_bytes, 0, sent.stored_bytes, sent.crc}});
      begin = end;
      at += sent.stored_bytes;
    }
  }

  const SentBlock& block_with(uint32_t i) const {
    return *std::upper_bound(
        blocks.begin(), blocks.end(), i,
        [](uint32_t entry, const SentBlock& block) { return entry < block.end; });
  }

  // Compares the checksums of blocks, or of entries that are not compressed.
  bool intact() const {
    for (uint32_t i = 0; i < positions.size() && blocks.empty(); i++) {
      if (entry_crc(positions[i], request.data_of(i)) != request.crcs[i]) return false;
    }
    return std::all_of(blocks.begin(), blocks.end(),
                       [](const SentBlock& sent) { return crc32c(sent.data) == sent.block.crc; });
  }

  const WriteRequest& request;
  const std::vector<uint64_t> positions;
  const TagsReader tags;
  std::vector<SentBlock> blocks;
};

// Compares entries of a request and of a record.
class Comparison {
 public:
  Comparison(Layout* layout, const Stored& stored, const Write& write)
      : layout_(layout), stored_(stored), stored_tags_(stored.record.tags), write_(write) {}

  // Returns whether two entries are equal except for their data. If the stored entry is trimmed,
  // its data and tags no longer exist.
  bool same_id(uint32_t i, uint32_t index) const {
    const Record& record = stored_.record;
    const WriteRequest& request = write_.request;
    return record.holds_entries() && record.origin.writer == request.writer &&
           record.origin.number + record.numbers[index] == request.number_of(i) &&
           record.crcs[index] == request.crcs[i] &&
           (!record.written(index) || (record.bytes_of(index) == request.bytes_of(i) &&
                                       write_.tags.of(i) == stored_tags_.of(index)));
  }

  // Whether they are at one place of the same block.
  int same_block(uint32_t i, uint32_t index, bool* out) {
    const Block& other = stored_.record.block;
    *out = false;
    if (write_.blocks.empty() || !stored_.record.compressed()) return 0;
    const SentBlock& sent = write_.block_with(i);
    const Block own = sent.at(write_.request, i);
    if (own.compression != other.compression || own.plain_bytes != other.plain_bytes ||
        own.stored_bytes != other.stored_bytes || own.crc != other.crc ||
        own.skip != other.skip + stored_.record.begin_of(index)) {
      return 0;
    }
    if (compared_ != &sent) {
      std::string buffer;
      std::string_view found;
      ZLOG_TRY(layout_->block_of(stored_, &buffer, &found));
      compared_ = &sent;
      same_ = sent.same_bytes(found);
    }
    *out = same_;
    return 0;
  }

 private:
  Layout* const layout_;
  const Stored& stored_;
  const TagsReader stored_tags_;
  const Write& write_;
  const SentBlock* compared_ = nullptr;  // the block that was compared last
  bool same_ = false;
};

// Sorts positions of one record into claims. An entry makes no claim if the same append with the
// same data is already stored, even if it was damaged or trimmed later. Readers learn the ids of
// appends, so another writer may have stored other data under this id; that blocks the position. If
// either entry is compressed, their data is the same only if their blocks are.
int sort_covered(Layout* layout, const Header& header, const Write& write,
                 const Walk::Stretch& stretch, Claims* claims) {
  const WriteRequest& request = write.request;
  const std::vector<uint64_t>& positions = write.positions;
  const Stored& stored = *stretch.stored;
  const Record& record = stored.record;
  const bool comparable = write.blocks.empty() && !record.compressed();
  const Striping striping = header.striping();
  Comparison comparison(layout, stored, write);
  for (uint32_t i = stretch.begin; i < stretch.end;) {
    const uint32_t index = striping.index(stored.span, positions[i]);
    uint32_t count = 0;  // consecutive entries that are alike and whose data can be compared
    while (comparable && i + count < stretch.end &&
           positions[i + count] == striping.after(positions[i], count) &&
           comparison.same_id(i + count, index + count) && record.written(index + count)) {
      count++;
    }
    if (count == 0) {
      if (!comparison.same_id(i, index)) {
        claims->block(blocking_code(stored), positions[i]);
      } else if (record.written(index) && positions[i] >= header.trim_point) {
        bool same = false;
        ZLOG_TRY(comparison.same_block(i, index, &same));
        if (!same && claims->same_id.code == kOk) claims->same_id = {kSameId, positions[i]};
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

// Returns the entries [begin, end) of the request, which are at consecutive positions. If they are
// compressed, returns only those in the first entry's block. `kept` owns the tags if they are not
// all tags of the request.
Batch batch_of(const Write& write, uint32_t begin, uint32_t end, TagsBuilder* kept) {
  const WriteRequest& request = write.request;
  const SentBlock* const block = write.blocks.empty() ? nullptr : &write.block_with(begin);
  if (block != nullptr) end = std::min(end, block->end);
  Batch batch;
  batch.origin = {request.timestamp, request.writer, request.number};
  batch.first = write.positions[begin];
  batch.entries.reserve(end - begin);
  for (uint32_t i = begin; i < end; i++) {
    batch.entries.push_back(
        {EntryState::kWritten, request.bytes_of(i), request.crcs[i], request.numbers[i]});
  }
  if (end - begin == write.positions.size()) {
    batch.tags = request.tags;
  } else if (request.tags.any()) {
    kept->add(write.tags, begin, end);
    batch.tags = kept->tags();
  }
  const uint32_t from = request.begin_of(begin);
  batch.data_bytes = request.ends[end - 1] - from;
  if (block != nullptr) {
    batch.block = block->at(request, begin);
    batch.data = block->data;
    batch.beside = request.data.size() - batch.data.size();
  } else {
    batch.data = request.data.substr(from, batch.data_bytes);
  }
  return batch;
}

int store(Object& object, Header* header, const Write& write, const std::vector<uint32_t>& open) {
  const std::vector<uint64_t>& positions = write.positions;
  Layout layout(object, *header);
  const Striping striping = header->striping();
  const bool tagged = header->tagged || write.request.tags.any();
  if (tagged) ZLOG_TRY(make_chunks(object, header, positions[open.front()]));
  const uint64_t records = header->records;
  uint64_t data_bytes = 0;
  for (size_t i = 0; i < open.size();) {
    const uint32_t begin = open[i];
    uint32_t end = begin + 1;
    const auto goes_on = [&] {
      return i < open.size() && open[i] == end &&
             positions[end] == striping.next(positions[end - 1]);
    };
    for (i++; goes_on(); i++) end++;
    for (uint32_t at = begin; at < end;) {
      TagsBuilder kept;
      const Batch batch = batch_of(write, at, end, &kept);
      // A block is stored once for each run of its positions. This must not multiply a request.
      data_bytes += batch.data.size();
      if (data_bytes > limits::request_bytes_max) return -E2BIG;
      ZLOG_TRY(layout.append(batch));
      at += static_cast<uint32_t>(batch.entries.size());
    }
    header->use({positions[begin], positions[end - 1]});
  }
  if (tagged) header->unindexed_records += static_cast<uint32_t>(header->records - records);
  if (write.request.tags.any()) ZLOG_TRY(add_tags(object, header, positions, write.tags, open));
  return header->save(object);
}

}  // namespace

Result<Fullness> write(Object& object, const WriteRequest& request) {
  const Write write(request);
  if (!write.intact()) return Failure{-EINVAL};
  const std::vector<uint64_t>& positions = write.positions;
  Header header;
  ZLOG_TRY(Header::load(object, &header));
  if (!header.owns(request.runs)) return Failure{-EINVAL};

  Layout layout(object, header);
  const auto decide = [&](const Walk::Stretch& stretch, Claims* claims) {
    if (stretch.stored != nullptr) return sort_covered(&layout, header, write, stretch, claims);
    for (uint32_t i = stretch.begin; i < stretch.end; i++) {
      if (positions[i] < header.trim_point) {
        claims->block(kReadOnly, positions[i]);
      } else {
        claims->claim(i, positions[i], header.lost(positions[i]));
      }
    }
    return 0;
  };
  Claims claims;
  ZLOG_TRY(sort_claims(object, header, positions, decide, &claims));
  ZLOG_TRY(claims.same_id);
  if (claims.open.empty() && claims.blocked.code == kOk) return header.fullness();
  ZLOG_TRY(claims.unknown);
  ZLOG_TRY(header.admit(request.epoch));
  ZLOG_TRY(claims.blocked);
  ZLOG_TRY(header.take(positions[claims.open.back()]));
  ZLOG_TRY(store(object, &header, write, claims.open));
  return header.fullness();
}

Result<Empty> fill(Object& object, Header& header, const FillRequest& request) {
  const std::vector<uint64_t> positions = request.runs.positions();
  const auto decide = [&](const Walk::Stretch& stretch, Claims* claims) {
    const Stored* const stored = stretch.stored;
    for (uint32_t i = stretch.begin; i < stretch.end; i++) {
      const uint64_t position = positions[i];
      if (position < header.trim_point) continue;
      if (stored == nullptr) {
        claims->claim(i, position, header.lost(position));
        continue;
      }
      const uint32_t index = header.striping().index(stored->span, position);
      const EntryState state = stored->record.state_of(index);
      if (state != EntryState::kFilled && state != EntryState::kTrimmed) {
        claims->block(blocking_code(*stored), position);
      }
    }
    return 0;
  };
  Claims claims;
  ZLOG_TRY(sort_claims(object, header, positions, decide, &claims));
  ZLOG_TRY(claims.blocked);
  if (claims.open.empty()) return Empty();
  std::vector<uint64_t> holes;
  holes.reserve(claims.open.size());
  for (const uint32_t i : claims.open) holes.push_back(positions[i]);
  ZLOG_TRY(header.take(holes.back()));
  Layout layout(object, header);
  for (const Span& span : spans_of(holes, header.striping())) {
    ZLOG_TRY(layout.put_fill(span, {request.timestamp, request.writer, 0}, request.reason));
    header.use(span);
  }
  return failure_of(header.save(object));
}

}  // namespace zlog::stripe
