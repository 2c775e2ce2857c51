#include "cls_zlog/wire/cursor_messages.h"

#include <cerrno>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/base/names.h"
#include "cls_zlog/wire/wire.h"

namespace zlog {
namespace {

using wire::new_message;
using wire::open_message;
using wire::open_request;
using wire::Reader;
using wire::result;
using wire::Writer;

constexpr uint32_t kListedBytesMin = 4 + 3 * 8;  // of one cursor in a list

void put(Writer* writer, const CursorReadReply& cursor) {
  writer->u64(cursor.position).u64(cursor.created).u64(cursor.updated);
}

void take(Reader* reader, CursorReadReply* out) {
  out->position = reader->u64();
  out->created = reader->u64();
  out->updated = reader->u64();
}

}  // namespace

std::string CursorCommitRequest::encode() const {
  std::string out = new_message();
  Writer(&out).u64(log_id).string(name).u8(static_cast<uint8_t>(mode)).u64(position).u64(timestamp);
  return out;
}

int CursorCommitRequest::decode(std::string_view bytes, CursorCommitRequest* out) {
  Reader reader = open_request(bytes);
  out->log_id = reader.u64();
  out->name = reader.string(limits::log_name_bytes_max);
  const uint8_t mode = reader.u8();
  out->mode = static_cast<CommitMode>(mode);
  out->position = reader.u64();
  out->timestamp = reader.u64();
  return result(reader.done() && valid_cursor_name(out->name) &&
                mode <= static_cast<uint8_t>(CommitMode::kSet) &&
                out->position <= limits::position_max + 1);
}

std::string CursorRequest::encode() const {
  std::string out = new_message();
  Writer(&out).u64(log_id).string(name);
  return out;
}

int CursorRequest::decode(std::string_view bytes, CursorRequest* out) {
  Reader reader = open_request(bytes);
  out->log_id = reader.u64();
  out->name = reader.string(limits::log_name_bytes_max);
  return result(reader.done() && valid_cursor_name(out->name));
}

std::string CursorReadReply::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  put(&writer, *this);
  return out;
}

int CursorReadReply::decode(std::string_view bytes, CursorReadReply* out) {
  Reader reader = open_message(bytes);
  take(&reader, out);
  return result(reader.done());
}

std::string CursorListRequest::encode() const {
  std::string out = new_message();
  Writer(&out).u64(log_id).string(after).u32(count_max);
  return out;
}

int CursorListRequest::decode(std::string_view bytes, CursorListRequest* out) {
  Reader reader = open_request(bytes);
  out->log_id = reader.u64();
  out->after = reader.string(limits::log_name_bytes_max);
  out->count_max = reader.u32();
  return result(reader.done() && (out->after.empty() || valid_cursor_name(out->after)) &&
                out->count_max >= 1 && out->count_max <= limits::cursors_max);
}

std::string CursorListReply::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  writer.flag(more).u32(static_cast<uint32_t>(cursors.size()));
  for (const NamedCursor& each : cursors) put(&writer.string(each.name), each.cursor);
  return out;
}

int CursorListReply::decode(std::string_view bytes, CursorListReply* out) {
  Reader reader = open_message(bytes);
  out->more = reader.flag();
  const uint32_t count = reader.u32();
  if (count > reader.rest().size() / kListedBytesMin) return -EINVAL;
  out->cursors.clear();
  out->cursors.reserve(count);
  for (uint32_t i = 0; i < count; i++) {
    NamedCursor& each = out->cursors.emplace_back();
    each.name = reader.string(limits::log_name_bytes_max);
    take(&reader, &each.cursor);
  }
  return result(reader.done());
}

}  // namespace zlog
