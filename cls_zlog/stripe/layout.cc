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
  const uint32_t from = stored.record.begin_of(begin);
  return bytes_of(stored.record, from, stored.record.ends[end - 1] - from, buffer, out);
}

int Layout::block_of(const Stored& stored, std::string* buffer, std::string_view* out) {
  return bytes_of(stored.record, 0, stored.record.block.stored_bytes, buffer, out);
}

int Layout::bytes_of(const Record& record, uint32_t from, uint32_t length, std::string* buffer,
                     std::string_view* out) {
  if (!record.streamed()) {
    *out = record.data.substr(from, length);
    return 0;
  }
  const int r = object_.read(record.offset + from, length, buffer);
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

// Stores a batch with its data in the record. If the bytestream is full, the batch can be too large
// for one value, and is then split into several records.
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
  const Record& record = stored.record;
  std::vector<RecordEntry> entries = entries_of(record);
  bool any = false;
  for (const uint64_t position : positions) {
    const uint32_t i = header_.striping().index(stored.span, position);
    if (entries[i].state == EntryState::kTrimmed) continue;
    entries[i].state = EntryState::kTrimmed;
    forget(record, 1, record.bytes_of(i));
    any = true;
  }
  if (!any) return 0;
  std::string data;
  if (record.compressed()) {  // the block stays until its last entry is trimmed
    const auto written = [](const RecordEntry& each) { return each.state == EntryState::kWritten; };
    if (std::any_of(entries.begin(), entries.end(), written)) {
      data = record.data;
    } else {
      ZLOG_TRY(free_block(record));
    }
  } else if (record.streamed()) {  // the ends stay: they locate the data of the other entries
    for (const Span& span : spans_of(positions, header_.striping())) {
      const uint32_t begin = record.begin_of(header_.striping().index(stored.span, span.first));
      const uint32_t end = record.ends[header_.striping().index(stored.span, span.last)];
      ZLOG_TRY(punch(record.offset + begin, end - begin));
    }
  } else {
    for (uint32_t i = 0; i < entries.size(); i++) {
      if (entries[i].state == EntryState::kTrimmed) entries[i].bytes = 0;
      data.append(record.data.substr(record.begin_of(i), entries[i].bytes));
    }
  }
  Record left = record;
  TagsBuilder tags;
  if (record.tags.any()) keep_tags(TagsReader(record.tags), entries, &tags);
  left.tags = tags.tags();
  return put(std::string(stored.key), left, entries, data);
}

// Subtracts written entries from the counters.
void Layout::forget(const Record& record, uint64_t entries, uint64_t bytes) {
  header_.forget(entries, bytes);
  if (record.compressed()) header_.block_data -= std::min<uint64_t>(header_.block_data, bytes);
}

int Layout::free_block(const Record& record) {
  const uint32_t bytes = record.block.stored_bytes;
  header_.block_bytes -= std::min<uint64_t>(header_.block_bytes, bytes);
  return record.streamed() ? punch(record.offset, bytes) : 0;
}

int Layout::trim_sparse(const Stored& stored, const std::vector<uint64_t>& positions) {
  SparseBuilder kept;
  each_entry(stored.record, [&](const SparseBuilder::Entry& entry) {
    const uint64_t position = header_.striping().after(stored.span.first, entry.index);
    if (std::binary_search(positions.begin(), positions.end(), position)) {
      header_.forget(1, entry.data.size());
    } else {
      kept.add(entry);
    }
  });
  if (kept.count() == stored.record.left.count) return 0;
  const std::string key(stored.key);
  if (!kept.empty()) return put_value(key, kept.encode(key));
  Record trimmed;
  trimmed.kind = RecordKind::kTrim;
  return put(key, trimmed);
}

int Layout::punch(uint64_t offset, uint64_t length) {
  return length == 0 ? 0 : object_.zero(offset, length);
}

// Stores the rest of the record again for fewer positions; a damaged record as lost.
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
