#include "cls_zlog/stripe/record.h"

#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/envelope.h"

namespace zlog {
namespace {

constexpr size_t kBlockBytes = 1 + 4 * sizeof(uint32_t);
constexpr size_t kFieldsBytes =
    1 + 8 + limits::writer_bytes + 8 + kBlockBytes + 8;     // before the columns
constexpr size_t kColumnsBytes = 1 + 3 * sizeof(uint32_t);  // of one entry

}  // namespace

bool SparseEntries::valid(uint32_t positions) const {
  uint32_t end = 0;
  uint64_t named = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (indexes[i] >= positions || (i > 0 && indexes[i] <= indexes[i - 1])) return false;
    if (ends[i] < end || tag_counts[i] > limits::entry_tags_max) return false;
    end = ends[i];
    named += tag_counts[i];
  }
  return each_name(tag_names,
                   [&](std::string_view name) { return named-- > 0 && valid_tag(name); }) &&
         named == 0;
}

uint32_t SparseEntries::at_or_after(uint32_t index) const {
  uint32_t begin = 0;
  for (uint32_t end = count; begin < end;) {
    const uint32_t middle = begin + (end - begin) / 2;
    if (indexes[middle] < index) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

std::vector<uint32_t> SparseEntries::name_begins() const {
  std::vector<uint32_t> begins = {0};
  uint32_t at = 0;
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t left = tag_counts[i]; left > 0; left--) {
      at += 1 + static_cast<uint8_t>(tag_names[at]);
    }
    begins.push_back(at);
  }
  return begins;
}

Tags SparseEntries::tags_of(uint32_t i, const std::vector<uint32_t>& name_begins) const {
  static const std::string ids = [] {
    std::string made;
    for (uint32_t id = 0; id < limits::entry_tags_max; id++) wire::append(&made, id);
    return made;
  }();
  if (tag_counts[i] == 0) return {};
  return {tag_names.substr(name_begins[i], name_begins[i + 1] - name_begins[i]),
          {tag_counts.bytes(i, 1).data(), 1},
          {ids.data(), tag_counts[i]}};
}

bool Record::valid() const {
  if (sparse()) return left.valid(count) && data.size() == left.data_bytes();
  if (!holds_entries()) return data.empty();
  if (!tags.valid(count)) return false;
  uint32_t begin = 0;
  for (uint32_t i = 0; i < count; i++) {
    const bool known = written(i) || states[i] == static_cast<uint8_t>(EntryState::kTrimmed);
    if (!known || ends[i] < begin) return false;
    begin = ends[i];
  }
  if (compressed() && uint64_t{block.skip} + begin > block.plain_bytes) return false;
  if (streamed()) return data.empty() && stored_bytes() <= limits::stream_bytes_max - offset;
  return data.size() == (compressed() && !any_written() ? 0 : stored_bytes());
}

bool Record::any_written() const {
  return states.bytes().find(static_cast<char>(EntryState::kWritten)) != std::string_view::npos;
}

EntryState Record::state_of(uint32_t i) const {
  switch (kind) {
    case RecordKind::kInline:
    case RecordKind::kStream:
    case RecordKind::kBlock:
    case RecordKind::kBlockStream:
      return static_cast<EntryState>(states[i]);
    case RecordKind::kFill:
      return EntryState::kFilled;
    case RecordKind::kTrim:
      return EntryState::kTrimmed;
    case RecordKind::kUnreadable:
      return EntryState::kUnreadable;
    case RecordKind::kSparse:
    case RecordKind::kLost:
      break;
  }
  return EntryState::kLost;
}

Record Record::decode(std::string_view key, std::string_view value, uint64_t length) {
  Record lost;
  Envelope stored;
  if (!unwrap(key, value, &stored)) return lost;
  Record record;
  record.kind = RecordKind::kUnreadable;  // until its fields say
  record.count = static_cast<uint32_t>(length);
  record.data = stored.payload;
  const wire::Decoded decoded = wire::decode_fields(stored.versions, stored.fields, &record);
  if (decoded == wire::Decoded::kTooNew) lost.kind = RecordKind::kUnreadable;
  const bool fits = !(record.holds_entries() || record.sparse()) || length <= limits::entries_max;
  return decoded == wire::Decoded::kOk && fits ? record : lost;
}

// Writes the columns in place, after the fields that each() encodes for no entries.
std::string encode_record(std::string_view key, const Record& record,
                          const std::vector<RecordEntry>& entries, std::string_view data) {
  std::string fields;
  fields.reserve(kFieldsBytes + entries.size() * kColumnsBytes + record.tags.names.size() +
                 record.tags.counts.size() + record.tags.ids.bytes().size() +
                 record.further.fields.size());
  wire::Encoder encoder(&fields);
  Record head = record;
  head.count = 0;
  head.states = {};
  head.ends = head.crcs = head.numbers = {};
  head.tags = {};
  head.tagged = false;
  head.each(encoder);
  for (const RecordEntry& entry : entries) {
    wire::append(&fields, static_cast<uint8_t>(entry.state));
  }
  uint32_t end = 0;
  for (const RecordEntry& entry : entries) wire::append(&fields, end += entry.bytes);
  for (const RecordEntry& entry : entries) wire::append(&fields, entry.crc);
  for (const RecordEntry& entry : entries) wire::append(&fields, entry.number);
  if (record.tags.any() || !record.further.fields.empty()) {
    Tags tags = record.tags;
    tags.each(encoder, static_cast<uint32_t>(entries.size()), Record::kVersion);
  }
  fields.append(record.further.fields);
  return wrap(key, wire::versions_of(record), fields, data);
}

void SparseBuilder::add(const Entry& entry) {
  count_++;
  wire::append(&indexes_, entry.index);
  wire::append(&timestamps_, entry.timestamp);
  writers_.append(entry.writer);
  wire::append(&numbers_, entry.number);
  data_.append(entry.data);
  wire::append(&ends_, static_cast<uint32_t>(data_.size()));
  wire::append(&crcs_, entry.crc);
  tag_names_.append(entry.tag_names);
  wire::append(&tag_counts_, entry.tag_count);
}

std::string SparseBuilder::encode(std::string_view key) const {
  Record record;
  record.kind = RecordKind::kSparse;
  const uint32_t count = count_;
  record.left = {count,
                 {indexes_.data(), count},
                 {timestamps_.data(), count},
                 writers_,
                 {numbers_.data(), count},
                 {ends_.data(), count},
                 {crcs_.data(), count},
                 tag_names_,
                 {tag_counts_.data(), count}};
  std::string fields;
  wire::Encoder encoder(&fields);
  record.each(encoder);
  return wrap(key, wire::versions_of(record), fields, data_);
}

void each_entry(const Record& record, const std::function<void(const SparseBuilder::Entry&)>& use) {
  const SparseEntries& left = record.left;
  const std::vector<uint32_t> names = left.name_begins();
  for (uint32_t i = 0; i < left.count; i++) {
    use({left.indexes[i], left.timestamps[i], left.writer_of(i), left.numbers[i], left.crcs[i],
         left.tag_names.substr(names[i], names[i + 1] - names[i]), left.tag_counts[i],
         record.data.substr(left.begin_of(i), left.bytes_of(i))});
  }
}

}  // namespace zlog
