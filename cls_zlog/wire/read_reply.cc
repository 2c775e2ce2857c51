#include "cls_zlog/wire/read_reply.h"

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/wire/frame.h"

namespace zlog {

bool ReadReply::take_data(std::string_view behind) {
  data = behind;
  const uint32_t plain_bytes = ends[count - 1];
  if (!cut(ends, plain_bytes)) return false;
  if (!blocks.empty() && plain_bytes > limits::read_reply_bytes_max) return false;
  for (uint32_t i = 0; i < count; i++) {
    const bool written = states[i] == static_cast<uint8_t>(EntryState::kWritten);
    if (!written && ends[i] != begin_of(i)) return false;
  }
  uint64_t data_bytes = plain_bytes;  // stored: blocks instead of their plain data
  uint64_t blocks_bytes = 0;
  uint32_t next = 0;  // entry
  for (size_t b = 0; b < blocks.size(); b++) {
    const ReadBlock& block = blocks[b];
    if (block.first < next || block.first >= count || block.entries > count - block.first) {
      return false;
    }
    next = block.first + block.entries;
    const uint32_t part = ends[next - 1] - begin_of(block.first);
    if (part > block.plain_bytes || block.skip > block.plain_bytes - part) return false;
    const bool once_more = block.stored_bytes == 0;
    if (once_more && (b == 0 || block.plain_bytes != blocks[b - 1].plain_bytes ||
                      block.compression != blocks[b - 1].compression)) {
      return false;
    }
    if (!once_more) blocks_bytes += block.plain_bytes;
    data_bytes += block.stored_bytes;
    data_bytes -= part;
  }
  return blocks_bytes <= limits::read_blocks_bytes_max && data_bytes == behind.size();
}

std::string_view ReadReply::data_of(uint32_t i) const {
  return data.substr(begin_of(i), ends[i] - begin_of(i));
}

std::string_view ReadReply::writer_of(uint32_t i) const {
  return writers.substr(with_ids ? size_t{i} * limits::writer_bytes : 0,
                        with_ids ? limits::writer_bytes : 0);
}

FillReason ReadReply::reason_of(uint32_t i) const {
  const bool known = reasons[i] <= static_cast<uint8_t>(FillReason::kWriterGaveUp);
  return known ? static_cast<FillReason>(reasons[i]) : FillReason::kUnknown;
}

EntryState ReadReply::stored_state_of(uint32_t i) const {
  const auto state = static_cast<EntryState>(states[i]);
  return state > EntryState::kUnreadable ? EntryState::kUnreadable : state;
}

EntryState ReadReply::state_of(uint32_t i, uint64_t position) const {
  const EntryState state = stored_state_of(i);
  if (state != EntryState::kWritten) return state;
  return entry_crc(position, data_of(i)) == crcs[i] ? state : EntryState::kLost;
}

ReadReplyBuilder::ReadReplyBuilder(std::optional<uint64_t> highest, bool with_ids,
                                   uint32_t count_max, bool with_tags)
    : highest_(highest), with_ids_(with_ids), with_tags_(with_tags) {
  states_.reserve(size_t{count_max} * sizeof(uint8_t));
  timestamps_.reserve(size_t{count_max} * sizeof(uint64_t));
  ends_.reserve(size_t{count_max} * sizeof(uint32_t));
  crcs_.reserve(size_t{count_max} * sizeof(uint32_t));
}

void ReadReplyBuilder::add(const ReadEntry& entry, uint32_t bytes, std::string_view tag) {
  count_++;
  wire::append(&states_, static_cast<uint8_t>(entry.state));
  wire::append(&timestamps_, entry.timestamp);
  wire::append(&ends_, data_bytes_ += bytes);
  wire::append(&crcs_, entry.crc);
  if (with_ids_) add_ids(entry.writer, entry.number, entry.reason);
  if (!tag.empty()) {
    tags_.add(tag);
  } else if (with_tags_) {
    tags_.add_none(1);
  }
}

void ReadReplyBuilder::add(const ReadEntries& entries) {
  const uint32_t begin = entries.begin_of(entries.first);
  const uint32_t base = data_bytes_ - begin;  // may wrap around, and back when it is added
  const size_t timestamps = timestamps_.size(), ends = ends_.size();
  states_.append(entries.count, static_cast<char>(EntryState::kWritten));
  timestamps_.resize(timestamps + entries.count * sizeof(uint64_t));
  ends_.resize(ends + entries.count * sizeof(uint32_t));
  for (uint32_t i = 0; i < entries.count; i++) {
    wire::store(&timestamps_[timestamps + i * sizeof(uint64_t)], entries.timestamp);
    wire::store(&ends_[ends + i * sizeof(uint32_t)], base + entries.end_of(entries.first + i));
  }
  crcs_.append(entries.crcs.bytes(entries.first, entries.count));
  if (with_tags_ && entries.tags != nullptr) {
    tags_.add(*entries.tags, entries.first, entries.first + entries.count);
  } else if (with_tags_) {
    tags_.add_none(entries.count);
  }
  count_ += entries.count;
  data_bytes_ = base + entries.begin_of(entries.first + entries.count);
  for (uint32_t i = 0; with_ids_ && i < entries.count; i++) {
    const uint64_t number = entries.number + entries.numbers[entries.first + i];
    add_ids(entries.writer, number, FillReason::kUnknown);
  }
}

void ReadReplyBuilder::add_block(ReadBlock block) {
  block.first = count_;
  blocks_.push_back(block);
}

void ReadReplyBuilder::add_ids(std::string_view writer, uint64_t number, FillReason reason) {
  writers_.append(writer);
  writers_.append(limits::writer_bytes - writer.size(), '\0');
  wire::append(&numbers_, number);
  wire::append(&reasons_, static_cast<uint8_t>(reason));
}

void ReadReplyBuilder::encode(std::string* out) const {
  ReadReply reply;
  reply.highest = highest_;
  reply.count = count_;
  reply.with_ids = with_ids_;
  reply.states = {states_.data(), count_};
  reply.timestamps = {timestamps_.data(), count_};
  reply.ends = {ends_.data(), count_};
  reply.crcs = {crcs_.data(), count_};
  reply.writers = writers_;
  reply.numbers = {numbers_.data(), with_ids_ ? count_ : 0};
  reply.reasons = {reasons_.data(), with_ids_ ? count_ : 0};
  reply.blocks = blocks_;
  reply.tags = tags_.tags();
  constexpr size_t kEachMax = 1 + 8 + 4 + 4 + limits::writer_bytes + 8 + 1;
  constexpr size_t kBlockBytes = wire::kFrameBytes + 4 + 4 + 1 + 4 + 4 + 4;
  out->reserve(64 + count_ * kEachMax + blocks_.size() * kBlockBytes + tags_.bytes());
  wire::encode(reply, out);
}

}  // namespace zlog
