#include "cls_zlog/stripe/record.h"

#include "cls_zlog/base/envelope.h"
#include "cls_zlog/base/limits.h"

namespace zlog {
namespace {

using wire::Reader;
using wire::Writer;

// The index of the entries in `record`; false when it contradicts itself.
bool decode_entries(Reader* reader, uint64_t length, std::string_view payload, Record* record) {
  if (length > limits::entries_max) return false;
  const uint32_t count = static_cast<uint32_t>(length);
  record->timestamp = reader->u64();
  record->writer = reader->bytes(limits::writer_bytes);
  record->number = reader->u64();
  if (record->kind == RecordKind::kStream) record->offset = reader->u64();
  record->states = reader->column<uint8_t>(count);
  record->ends = reader->column<uint32_t>(count);
  record->crcs = reader->column<uint32_t>(count);
  record->numbers = reader->column<uint32_t>(count);
  if (!reader->done()) return false;
  uint32_t begin = 0;
  for (uint32_t i = 0; i < count; i++) {
    const bool known = record->written(i) ||
                       record->states[i] == static_cast<uint8_t>(EntryState::kTrimmed);
    if (!known || record->ends[i] < begin) return false;
    begin = record->ends[i];
  }
  record->data = payload;
  if (record->kind == RecordKind::kInline) return payload.size() == begin;
  return payload.empty() && record->offset <= limits::stream_bytes_max &&
         begin <= limits::stream_bytes_max - record->offset;
}

bool decode_body(const Unwrapped& stored, uint64_t length, Record* record) {
  Reader reader(stored.body);
  const uint8_t kind = reader.u8();
  record->kind = static_cast<RecordKind>(kind);
  switch (record->kind) {
    case RecordKind::kInline:
    case RecordKind::kStream:
      return decode_entries(&reader, length, stored.payload, record);
    case RecordKind::kFill: {
      record->timestamp = reader.u64();
      record->writer = reader.bytes(limits::writer_bytes);
      const uint8_t reason = reader.u8();
      record->reason = static_cast<FillReason>(reason);
      return reader.done() && stored.payload.empty() &&
             reason <= static_cast<uint8_t>(FillReason::kWriterGaveUp);
    }
    case RecordKind::kTrim:
    case RecordKind::kLost:
      return reader.done() && stored.payload.empty();
  }
  return false;
}

// All fields of an index up to its columns.
void put_origin(Writer* writer, RecordKind kind, const RecordOrigin& origin) {
  writer->u8(static_cast<uint8_t>(kind)).u64(origin.timestamp).bytes(origin.writer);
}

void put_entries(Writer* writer, const std::vector<RecordEntry>& entries) {
  for (const RecordEntry& entry : entries) writer->u8(static_cast<uint8_t>(entry.state));
  uint32_t end = 0;
  for (const RecordEntry& entry : entries) {
    end += entry.bytes;
    writer->u32(end);
  }
  for (const RecordEntry& entry : entries) writer->u32(entry.crc);
  for (const RecordEntry& entry : entries) writer->u32(entry.number);
}

}  // namespace

EntryState Record::state_of(uint32_t i) const {
  switch (kind) {
    case RecordKind::kInline:
    case RecordKind::kStream:
      return static_cast<EntryState>(states[i]);
    case RecordKind::kFill:
      return EntryState::kFilled;
    case RecordKind::kTrim:
      return EntryState::kTrimmed;
    case RecordKind::kLost:
      return EntryState::kLost;
  }
  return EntryState::kLost;
}

Record Record::decode(std::string_view key, std::string_view value, uint64_t length) {
  Unwrapped stored;
  Record record;
  if (unwrap(key, value, &stored) && decode_body(stored, length, &record)) return record;
  return Record();
}

std::string encode_inline(std::string_view key, const RecordOrigin& origin,
                          const std::vector<RecordEntry>& entries, std::string_view data) {
  std::string body;
  Writer writer(&body);
  put_origin(&writer, RecordKind::kInline, origin);
  writer.u64(origin.number);
  put_entries(&writer, entries);
  return wrap(key, body, data);
}

std::string encode_stream(std::string_view key, const RecordOrigin& origin,
                          const std::vector<RecordEntry>& entries, uint64_t offset) {
  std::string body;
  Writer writer(&body);
  put_origin(&writer, RecordKind::kStream, origin);
  writer.u64(origin.number).u64(offset);
  put_entries(&writer, entries);
  return wrap(key, body);
}

std::string encode_fill(std::string_view key, const RecordOrigin& origin, FillReason reason) {
  std::string body;
  Writer writer(&body);
  put_origin(&writer, RecordKind::kFill, origin);
  writer.u8(static_cast<uint8_t>(reason));
  return wrap(key, body);
}

std::string encode_mark(std::string_view key, RecordKind kind) {
  std::string body;
  Writer(&body).u8(static_cast<uint8_t>(kind));
  return wrap(key, body);
}

}  // namespace zlog
