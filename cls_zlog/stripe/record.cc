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
    if (places[i] >= positions || (i > 0 && places[i] <= places[i - 1])) return false;
    if (ends[i] < end || tag_counts[i] > limits::entry_tags_max) return false;
    end = ends[i];
    named += tag_counts[i];
  }
  std::string_view names = tag_names;
  for (; named > 0 && !names.empty(); named--) {
    const size_t size = static_cast<uint8_t>(names[0]);
    if (size >= names.size() || !valid_tag(names.substr(1, size))) return false;
    names.remove_prefix(1 + size);
  }
  return named == 0 && names.empty();
}

uint32_t SparseEntries::at_or_after(uint32_t place) const {
  uint32_t begin = 0;
  for (uint32_t end = count; begin < end;) {
    const uint32_t middle = begin + (end - begin) / 2;
    if (places[middle] < place) {
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
  switch (wire::decode_fields(stored.versions, stored.fields, &record)) {
    case wire::Decoded::kOk:
      return !(record.holds_entries() || record.sparse()) || length <= limits::entries_max ? record
                                                                                           : lost;
    case wire::Decoded::kTooNew:
      lost.kind = RecordKind::kUnreadable;
      return lost;
    case wire::Decoded::kMalformed:
      break;
  }
  return lost;
}

// The columns are put where they are to stay, behind the fields that each() gives for none.
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

}  // namespace zlog
