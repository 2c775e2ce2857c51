#include "cls_zlog/repair/record.h"

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/stripe/header.h"
#include "cls_zlog/stripe/layout.h"
#include "cls_zlog/stripe/scan.h"
#include "cls_zlog/wire/envelope.h"

namespace zlog::repair {
namespace {

// Whether this is all data of the record's written entries, one after the other, and sound; of a
// compressed record, its block.
bool fits(const Record& record, const Span& span, const Spacing& spacing, std::string_view data) {
  if (record.compressed() && record.any_written()) return stripe::intact_block(record, data);
  if (record.sparse()) {
    bool sound = true;
    each_entry(record, [&](const SparseBuilder::Entry& entry) {
      const uint64_t position = spacing.after(span.first, entry.place);
      sound = sound && entry_crc(position, entry.data) == entry.crc;
    });
    return sound;
  }
  uint64_t position = span.first;
  for (uint32_t i = 0; i < record.ends.size(); i++, position = spacing.next(position)) {
    if (!record.written(i)) continue;
    const std::string_view entry = data.substr(0, record.bytes_of(i));
    if (entry_crc(position, entry) != record.crcs[i]) return false;
    data.remove_prefix(entry.size());
  }
  return data.empty();
}

// Calls `use(begin, end)` for each stretch of written entries of a record until it fails.
template <typename Use>
int each_written(const Record& record, const Use& use) {
  for (uint32_t i = 0; i < record.ends.size(); i++) {
    if (!record.written(i)) continue;
    const uint32_t begin = i;
    while (i + 1 < record.ends.size() && record.written(i + 1)) i++;
    ZLOG_TRY(use(begin, i + 1));
  }
  return 0;
}

// Of a record that lies wholly in its value the data in the bytestream is none.
std::string_view data_of(const Record& record, std::string_view streamed) {
  return record.streamed() ? streamed : record.data;
}

// Reads all data of a record that is in the bytestream.
int read_streamed(Layout* layout, const Stored& stored, std::string* out) {
  const Record& record = stored.record;
  std::string buffer;
  std::string_view data;
  if (record.compressed()) {
    if (record.any_written()) ZLOG_TRY(layout->block_of(stored, &buffer, &data));
    *out = data;
    return 0;
  }
  return each_written(record, [&](uint32_t begin, uint32_t end) {
    const int r = layout->data_of(stored, begin, end, &buffer, &data);
    out->append(data);
    return r;
  });
}

// Writes it.
int write_streamed(Object& object, const Record& record, std::string_view data) {
  if (record.compressed()) return data.empty() ? 0 : object.write(record.offset, data);
  return each_written(record, [&](uint32_t begin, uint32_t end) {
    const uint32_t from = record.begin_of(begin);
    const std::string_view part = data.substr(0, record.ends[end - 1] - from);
    data.remove_prefix(part.size());
    return object.write(record.offset + from, part);
  });
}

// The part of a value that its checksum covers, with that; empty when it is damaged.
std::string_view index_of(std::string_view key, std::string_view value) {
  Envelope envelope;
  if (!unwrap(key, value, &envelope)) return {};
  return value.substr(0, kEnvelopeBytes + envelope.fields.size());
}

// -ENOENT unless all these positions that are not trimmed have lost what was stored there, key and
// all: no record is there, and the header tells that something was.
int check_vanished(Object& object, const Header& header, const Span& span) {
  RecordIterator records(object, header, 1);
  const Stored* next = nullptr;
  ZLOG_TRY(records.seek(span.first, &next));
  if (next != nullptr && next->span.first <= span.last) return -ENOENT;
  for (uint64_t p = span.first; p <= span.last; p = header.spacing().next(p)) {
    if (p >= header.trim_point && !header.lost(p)) return -ENOENT;
  }
  return 0;
}

}  // namespace

bool is_record(std::string_view name) { return name.substr(0, kRecords.size()) == kRecords; }

Result<SalvageReply> salvage_record(Object& object, uint64_t position) {
  Header header;
  ZLOG_TRY(Header::load(object, &header));
  RecordIterator records(object, header, 1);
  const Stored* stored = nullptr;
  ZLOG_TRY(records.seek_whole(position, &stored));
  if (stored == nullptr || !stored->span.covers(position)) return Failure{-ENOENT};
  const Record& record = stored->record;
  if (record.unreadable()) return Failure{kUnreadable, stored->span.first};
  if (record.kind == RecordKind::kLost) return Failure{kLost, stored->span.first};
  SalvageReply reply;
  reply.name = stored->key;
  reply.last = stored->span.last;
  reply.value = stored->value.bytes;
  Layout layout(object, header);
  if (record.streamed()) ZLOG_TRY(read_streamed(&layout, *stored, &reply.data));
  if (!fits(record, stored->span, header.spacing(), data_of(record, reply.data))) {
    return Failure{-EIO};
  }
  return reply;
}

Result<Empty> heal_record(Object& object, const HealRequest& request) {
  Header header;
  ZLOG_TRY(Header::load(object, &header));
  const std::string key(request.name);
  Span span;
  if (!parse_key(key, header.spacing(), header.residue, &span)) return Failure{-EINVAL};
  const Record record = Record::decode(key, request.value, header.spacing().length(span));
  const bool streams = record.streamed();
  if (record.kind == RecordKind::kLost || record.unreadable() ||
      (!streams && !request.data.empty()) ||
      !fits(record, span, header.spacing(), data_of(record, request.data)) ||
      (streams && record.offset + record.stored_bytes() > header.stream_end)) {
    return Failure{-EINVAL};
  }
  if (span.last < header.trim_point) return Failure{kBelowTrimPoint, header.trim_point};
  std::string stored;
  const int r = object.omap_get(key, &stored);
  ZLOG_TRY(r == -ENOENT ? check_vanished(object, header, span) : r);
  const std::string_view index = index_of(key, stored);
  if (!index.empty() && index != index_of(key, request.value)) {
    return Failure{kReadOnly, span.first};
  }
  ZLOG_TRY(object.omap_set(key, request.value));
  if (streams) ZLOG_TRY(write_streamed(object, record, request.data));
  return Empty();
}

}  // namespace zlog::repair
