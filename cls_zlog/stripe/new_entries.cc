#include "cls_zlog/stripe/new_entries.h"

#include <algorithm>
#include <utility>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/stripe/tag_index.h"

namespace zlog::stripe {
namespace {

// Returns the entries [begin, end) of the request, which are at consecutive positions. If they are
// compressed, returns only those in the first entry's block. `kept` owns the tags if they are not
// all tags of the request.
Batch batch_of(const NewEntries& entries, uint32_t begin, uint32_t end, TagsBuilder* kept) {
  const SentEntries& sent = entries.sent;
  const SentBlock* const block = entries.blocks.empty() ? nullptr : &entries.block_with(begin);
  if (block != nullptr) end = std::min(end, block->end);
  Batch batch;
  batch.origin = {sent.timestamp, sent.writer, sent.number};
  batch.first = entries.positions[begin];
  batch.entries.reserve(end - begin);
  for (uint32_t i = begin; i < end; i++) {
    batch.entries.push_back({EntryState::kWritten, sent.bytes_of(i),
                             entries.crc_at(i, entries.positions[i]), sent.numbers[i]});
  }
  if (end - begin == entries.positions.size()) {
    batch.tags = sent.tags;
  } else if (sent.tags.any()) {
    kept->add(entries.tags, begin, end);
    batch.tags = kept->tags();
  }
  const uint32_t from = sent.begin_of(begin);
  batch.data_bytes = sent.ends[end - 1] - from;
  if (block != nullptr) {
    batch.block = block->at(sent, begin);
    batch.data = block->data;
    batch.beside = sent.data.size() - batch.data.size();
  } else {
    batch.data = sent.data.substr(from, batch.data_bytes);
  }
  return batch;
}

}  // namespace

bool SentBlock::same_bytes(std::string_view found) const {
  return found == data || crc32c(found) != block.crc;
}

NewEntries::NewEntries(const SentEntries& sent_entries, bool crcs_placed, std::vector<uint64_t> at)
    : sent(sent_entries), placed(crcs_placed), positions(std::move(at)), tags(sent.tags) {
  uint32_t begin = 0;
  uint64_t from = 0;
  for (const WriteBlock& block : sent.blocks) {
    const uint32_t end = begin + block.entries;
    const uint32_t plain_bytes = sent.ends[end - 1] - sent.begin_of(begin);
    blocks.push_back({begin,
                      end,
                      sent.data.substr(from, block.stored_bytes),
                      {sent.compression, plain_bytes, 0, block.stored_bytes, block.crc}});
    begin = end;
    from += block.stored_bytes;
  }
}

const SentBlock& NewEntries::block_with(uint32_t i) const {
  return *std::upper_bound(
      blocks.begin(), blocks.end(), i,
      [](uint32_t entry, const SentBlock& block) { return entry < block.end; });
}

bool NewEntries::intact() const {
  for (uint32_t i = 0; i < sent.ends.size() && blocks.empty(); i++) {
    const std::string_view data = sent.data_of(i);
    if ((placed ? entry_crc(positions[i], data) : crc32c(data)) != sent.crcs[i]) return false;
  }
  return std::all_of(blocks.begin(), blocks.end(),
                     [](const SentBlock& block) { return crc32c(block.data) == block.block.crc; });
}

uint32_t NewEntries::crc_at(uint32_t i, uint64_t position) const {
  if (placed) return sent.crcs[i];
  return crc32c_combine(entry_crc(position, {}), sent.crcs[i], sent.bytes_of(i));
}

// Returns whether two entries are equal except for their data. If the stored entry is trimmed, its
// data and tags no longer exist.
bool Comparison::same_id(uint32_t i, uint32_t index) const {
  const Record& record = stored_.record;
  const SentEntries& sent = entries_.sent;
  return record.holds_entries() && record.origin.writer == sent.writer &&
         record.origin.number + record.numbers[index] == sent.number_of(i) &&
         record.crcs[index] == entries_.crc_at(i, position_of(index)) &&
         (!record.written(index) || (record.bytes_of(index) == sent.bytes_of(i) &&
                                     entries_.tags.of(i) == stored_tags_.of(index)));
}

// Whether they are at one place of the same block.
int Comparison::same_block(uint32_t i, uint32_t index, bool* out) {
  const Block& other = stored_.record.block;
  *out = false;
  if (entries_.blocks.empty() || !stored_.record.compressed()) return 0;
  const SentBlock& sent = entries_.block_with(i);
  const Block own = sent.at(entries_.sent, i);
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

int Comparison::run(uint32_t i, uint32_t index, uint32_t count, std::vector<Verdict>* out) {
  const SentEntries& sent = entries_.sent;
  const Record& record = stored_.record;
  const bool comparable = entries_.blocks.empty() && !record.compressed();
  out->assign(count, Verdict::kSame);
  for (uint32_t k = 0; k < count;) {
    uint32_t end = k;  // of entries that are alike and whose data can be compared
    while (comparable && end < count && same_id(i + end, index + end) &&
           record.written(index + end)) {
      end++;
    }
    if (end == k) {
      if (!same_id(i + k, index + k)) {
        (*out)[k] = Verdict::kOther;
      } else if (record.written(index + k) && position_of(index + k) >= header_.trim_point) {
        bool same = false;
        ZLOG_TRY(same_block(i + k, index + k, &same));
        if (!same) (*out)[k] = Verdict::kCompare;
      }
      k++;
      continue;
    }
    std::string buffer;
    std::string_view data;
    ZLOG_TRY(layout_->data_of(stored_, index + k, index + end, &buffer, &data));
    for (; k < end; k++) {
      const std::string_view found = data.substr(0, sent.bytes_of(i + k));
      const uint64_t position = position_of(index + k);
      // Damaged data counts as the same.
      if (found != sent.data_of(i + k) && entry_crc(position, found) == record.crcs[index + k]) {
        (*out)[k] = Verdict::kOther;
      }
      data.remove_prefix(found.size());
    }
  }
  return 0;
}

int store(Object& object, Header* header, const NewEntries& entries,
          const std::vector<uint32_t>& open) {
  const std::vector<uint64_t>& positions = entries.positions;
  Layout layout(object, *header);
  const Striping striping = header->striping();
  const bool tagged = header->tagged || entries.sent.tags.any();
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
      const Batch batch = batch_of(entries, at, end, &kept);
      // A block is stored once for each run of its positions. This must not multiply a request.
      data_bytes += batch.data.size();
      if (data_bytes > limits::request_bytes_max) return -E2BIG;
      ZLOG_TRY(layout.append(batch));
      at += static_cast<uint32_t>(batch.entries.size());
    }
    header->use({positions[begin], positions[end - 1]});
  }
  if (tagged) header->unindexed_records += static_cast<uint32_t>(header->records - records);
  if (entries.sent.tags.any()) {
    ZLOG_TRY(add_tags(object, header, positions, entries.tags, open));
  }
  return header->save(object);
}

}  // namespace zlog::stripe
