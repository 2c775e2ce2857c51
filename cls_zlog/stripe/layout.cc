#include "cls_zlog/stripe/layout.h"

#include <algorithm>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/stripe/span_key.h"

namespace zlog {
namespace {

std::vector<RecordEntry> entries_of(const Record& record) {
  std::vector<RecordEntry> entries(record.ends.size());
  for (uint32_t i = 0; i < entries.size(); i++) {
    entries[i] = {static_cast<EntryState>(record.states[i]), record.bytes_of(i), record.crcs[i],
                  record.numbers[i]};
  }
  return entries;
}

// Adds the tags of the entries that are written. Trimmed ones lose their tags.
void keep_tags(const TagsReader& tags, const std::vector<RecordEntry>& entries, TagsBuilder* out) {
  std::vector<uint32_t> which(entries.size());
  for (uint32_t i = 0; i < which.size(); i++) {
    which[i] = entries[i].state == EntryState::kWritten ? i : TagsBuilder::kNone;
  }
  out->add(tags, which);
}

}  // namespace

std::vector<Span> spans_of(const std::vector<uint64_t>& positions, const Striping& striping) {
  std::vector<Span> spans;
  for (const uint64_t position : positions) {
    if (!spans.empty() && striping.next(spans.back().last) == position) {
      spans.back().last = position;
    } else {
      spans.push_back({position, position});
    }
  }
  return spans;
}

std::string Layout::key_of(const Span& span) const {
  return span_key(kRecords, span, header_.striping());
}

int Layout::put(const std::string& key, const Record& record,
                const std::vector<RecordEntry>& entries, std::string_view data) {
  return put_value(key, encode_record(key, record, entries, data));
}

int Layout::put_value(const std::string& key, const std::string& value) {
  header_.value_bytes = std::max(header_.value_bytes, static_cast<uint32_t>(value.size()));
  return object_.omap_set(key, value);
}

int Layout::data_of(const Stored& stored, uint32_t begin, uint32_t end, std::string* buffer,
                    std::string_view* out) {
  const Record& record = stored.record;
  const uint32_t from = record.begin_of(begin);
  const uint32_t length = record.ends[end - 1] - from;
  if (!record.streamed()) {
    *out = record.data.substr(from, length);
    return 0;
  }
  const int r = object_.read(record.offset + from, length, buffer);
  *out = *buffer;
  return r;
}

int Layout::block_of(const Stored& stored, std::string* buffer, std::string_view* out) {
  const Record& record = stored.record;
  *out = record.data;
  if (!record.streamed()) return 0;
  const int r = object_.read(record.offset, record.block.stored_bytes, buffer);
  *out = *buffer;
  return r;
}

int Layout::answer(const Stored& stored, uint32_t begin, uint32_t end, uint32_t* answered) {
  const Record& record = stored.record;
  const bool whole_block = record.compressed();
  const uint32_t from = whole_block ? 0 : record.begin_of(begin);
  const uint32_t length = whole_block ? record.block.stored_bytes : record.ends[end - 1] - from;
  *answered = end;
  if (!record.streamed()) {
    return object_.answer({record.data.substr(from, length), stored.value.owner});
  }
  uint64_t there = 0;
  const int r = object_.answer_stream(record.offset + from, length, &there);
  if (r < 0 || there == length) return r;
  *answered = begin;
  if (whole_block) return 0;
  while (record.ends[*answered] - from <= there) ++*answered;
  const uint32_t whole = record.begin_of(*answered) - from;
  return object_.answer_stream(record.offset + from, whole, &there);
}

int Layout::append(const Batch& batch) {
  const bool compressed = batch.block.compression != Compression::kNone;
  header_.entries += batch.entries.size();
  header_.bytes += batch.data_bytes;
  if (compressed) {
    header_.block_data += batch.data_bytes;
    header_.block_bytes += batch.data.size();
  }
  const bool fits = batch.data.size() <= limits::stream_bytes_max - header_.stream_end;
  const bool streamed = fits && batch.data.size() + batch.beside >= limits::inline_bytes_max;
  if (!streamed && !compressed) return append_inline(batch);
  Record record;
  record.kind = RecordKind::kBlock;
  if (streamed) record.kind = compressed ? RecordKind::kBlockStream : RecordKind::kStream;
  record.origin = batch.origin;
  record.block = batch.block;
  record.tags = batch.tags;
  if (streamed) {
    record.offset = header_.stream_end;
    header_.stream_end += batch.data.size();
    ZLOG_TRY(object_.write(record.offset, batch.data));
  }
  const uint64_t last = header_.striping().after(batch.first, batch.entries.size() - 1);
  return put_new({batch.first, last}, record, batch.entries,
                 streamed ? std::string_view() : batch.data);
}

// Cuts a batch into several records if it is too large for one value, as when the bytestream is
// full.
int Layout::append_inline(const Batch& batch) {
  const Striping striping = header_.striping();
  Record record;
  record.kind = RecordKind::kInline;
  record.origin = batch.origin;
  const TagsReader tags(batch.tags);
  std::string_view rest = batch.data;
  for (size_t begin = 0; begin < batch.entries.size();) {
    size_t end = begin;
    uint64_t bytes = 0;
    while (end < batch.entries.size() &&
           (end == begin || bytes + batch.entries[end].bytes <= limits::inline_bytes_max)) {
      bytes += batch.entries[end++].bytes;
    }
    const Span span = {striping.after(batch.first, begin), striping.after(batch.first, end - 1)};
    const RecordEntry* const entries = batch.entries.data();
    const std::vector<RecordEntry> piece(entries + begin, entries + end);
    TagsBuilder piece_tags;
    piece_tags.add(tags, begin, end);
    record.tags = piece_tags.tags();
    ZLOG_TRY(put_new(span, record, piece, rest.substr(0, bytes)));
    rest.remove_prefix(bytes);
    begin = end;
  }
  return 0;
}

int Layout::put_new(const Span& span, const Record& record, const std::vector<RecordEntry>& entries,
                    std::string_view data) {
  header_.records++;
  return put(key_of(span), record, entries, data);
}

int Layout::put_fill(const Span& span, const RecordOrigin& origin, FillReason reason) {
  Record record;
  record.kind = RecordKind::kFill;
  record.origin = origin;
  record.reason = reason;
  return put_new(span, record);
}

int Layout::put_trimmed(const Span& span) {
  Record record;
  record.kind = RecordKind::kTrim;
  return put_new(span, record);
}

int Layout::put_sparse(const Span& span, const SparseBuilder& entries) {
  header_.records++;
  const std::string key = key_of(span);
  return put_value(key, entries.encode(key));
}

int Layout::trim(const Stored& stored, const std::vector<uint64_t>& positions) {
  if (stored.record.kind == RecordKind::kTrim) return 0;
  if (stored.record.sparse()) return trim_sparse(stored, positions);
  return stored.record.holds_entries() ? trim_entries(stored, positions) : split(stored, positions);
}

int Layout::trim_entries(const Stored& stored, const std::vector<uint64_t>& positions) {
  std::vector<RecordEntry> entries = entries_of(stored.record);
  std::vector<uint32_t> gone;  // those that were not trimmed before
  for (const uint64_t position : positions) {
    const uint32_t i = header_.striping().index(stored.span, position);
    if (entries[i].state == EntryState::kTrimmed) continue;
    entries[i].state = EntryState::kTrimmed;
    forget(stored.record, 1, stored.record.bytes_of(i));
    gone.push_back(i);
  }
  if (gone.empty()) return 0;
  TagsBuilder tags;
  Stored left = stored;
  if (stored.record.tags.any()) {
    keep_tags(TagsReader(stored.record.tags), entries, &tags);
    left.record.tags = tags.tags();
  }
  if (stored.record.compressed()) return trim_block(left, entries);
  return stored.record.streamed() ? trim_stream(left, entries, gone)
                                  : trim_inline(left, std::move(entries));
}

// Subtracts written entries from the counters.
void Layout::forget(const Record& record, uint64_t entries, uint64_t bytes) {
  header_.forget(entries, bytes);
  if (record.compressed()) header_.block_data -= std::min<uint64_t>(header_.block_data, bytes);
}

// The block stays until its last entry is trimmed.
int Layout::trim_block(const Stored& stored, const std::vector<RecordEntry>& entries) {
  const Record& record = stored.record;
  const auto written = [](const RecordEntry& entry) { return entry.state == EntryState::kWritten; };
  const bool needed = std::any_of(entries.begin(), entries.end(), written);
  if (!needed) ZLOG_TRY(free_block(record));
  return put(std::string(stored.key), record, entries, needed ? record.data : std::string_view());
}

int Layout::free_block(const Record& record) {
  const uint32_t bytes = record.block.stored_bytes;
  header_.block_bytes -= std::min<uint64_t>(header_.block_bytes, bytes);
  return record.streamed() ? punch(record.offset, bytes) : 0;
}

// Keeps the ends, which locate the data of the other entries.
int Layout::trim_stream(const Stored& stored, const std::vector<RecordEntry>& entries,
                        const std::vector<uint32_t>& gone) {
  const Record& record = stored.record;
  for (size_t i = 0; i < gone.size();) {
    const uint32_t begin = record.begin_of(gone[i]);
    uint32_t end = record.ends[gone[i]];
    for (i++; i < gone.size() && record.begin_of(gone[i]) == end; i++) end = record.ends[gone[i]];
    ZLOG_TRY(punch(record.offset + begin, end - begin));
  }
  return put(std::string(stored.key), record, entries);
}

int Layout::trim_inline(const Stored& stored, std::vector<RecordEntry> entries) {
  const Record& record = stored.record;
  std::string data;
  for (uint32_t i = 0; i < entries.size(); i++) {
    if (entries[i].state == EntryState::kTrimmed) {
      entries[i].bytes = 0;
    } else {
      data.append(record.data.substr(record.begin_of(i), record.bytes_of(i)));
    }
  }
  return put(std::string(stored.key), record, entries, data);
}

int Layout::trim_sparse(const Stored& stored, const std::vector<uint64_t>& positions) {
  const SparseEntries& left = stored.record.left;
  SparseBuilder kept;
  auto next = positions.begin();
  each_entry(stored.record, [&](const SparseBuilder::Entry& entry) {
    const uint64_t position = header_.striping().after(stored.span.first, entry.index);
    next = std::lower_bound(next, positions.end(), position);
    if (next != positions.end() && *next == position) {
      header_.forget(1, entry.data.size());
    } else {
      kept.add(entry);
    }
  });
  if (kept.count() == left.count) return 0;
  const std::string key(stored.key);
  if (!kept.empty()) return put_value(key, kept.encode(key));
  Record trimmed;
  trimmed.kind = RecordKind::kTrim;
  return put(key, trimmed);
}

int Layout::punch(uint64_t offset, uint64_t length) {
  return length == 0 ? 0 : object_.zero(offset, length);
}

// What is left of the record is stored again for fewer positions; a damaged record, as lost.
int Layout::split(const Stored& stored, const std::vector<uint64_t>& positions) {
  const Striping striping = header_.striping();
  ZLOG_TRY(remove(std::string(stored.key), std::string(stored.key), 1));
  uint64_t next = stored.span.first;
  for (const Span& gone : spans_of(positions, striping)) {
    if (next < gone.first) ZLOG_TRY(put_new({next, striping.before(gone.first, 1)}, stored.record));
    ZLOG_TRY(put_trimmed(gone));
    next = striping.next(gone.last);
  }
  return next > stored.span.last ? 0 : put_new({next, stored.span.last}, stored.record);
}

int Layout::free(const Stored& stored) {
  const Record& record = stored.record;
  if (record.sparse()) return give_back(stored, record.left.count, record.left.data_bytes());
  if (!record.holds_entries()) return 0;
  uint64_t entries = 0;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < record.ends.size(); i++) {
    if (!record.written(i)) continue;
    entries++;
    bytes += record.bytes_of(i);
  }
  return give_back(stored, entries, bytes);
}

int Layout::give_back(const Stored& stored, uint64_t gone, uint64_t gone_bytes) {
  const Record& record = stored.record;
  forget(record, gone, gone_bytes);
  if (record.compressed()) return record.any_written() ? free_block(record) : 0;
  return record.streamed() ? punch(record.offset, record.stored_bytes()) : 0;
}

int Layout::remove(const std::string& first, const std::string& last, uint64_t count) {
  header_.records -= std::min(header_.records, count);
  return object_.omap_remove_range(first, last + '\0');
}

}  // namespace zlog
