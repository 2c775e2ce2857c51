#include "cls_zlog/wire/head_messages.h"

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

// A list of `count` strings; the count may not promise more than is there.
bool strings(Reader* reader, uint32_t count_max, uint32_t bytes_max,
             std::vector<std::string_view>* out) {
  const uint32_t count = reader->u32();
  if (!reader->ok() || count > count_max || count > reader->rest().size() / sizeof(uint32_t)) {
    return false;
  }
  out->clear();
  out->reserve(count);
  for (uint32_t i = 0; i < count; i++) out->push_back(reader->string(bytes_max));
  return reader->ok();
}

void put(Writer* writer, const std::vector<std::string_view>& strings) {
  writer->u32(static_cast<uint32_t>(strings.size()));
  for (const std::string_view string : strings) writer->string(string);
}

}  // namespace

std::string encode_empty() { return new_message(); }

int decode_empty(std::string_view bytes) { return result(open_request(bytes).done()); }

std::string HeadCreateRequest::encode() const {
  std::string out = new_message();
  Writer(&out).string(name).u64(log_id);
  return out;
}

int HeadCreateRequest::decode(std::string_view bytes, HeadCreateRequest* out) {
  Reader reader = open_request(bytes);
  out->name = reader.string(limits::log_name_bytes_max);
  out->log_id = reader.u64();
  return result(reader.done() && valid_log_name(out->name));
}

std::string EpochNextRequest::encode() const {
  std::string out = new_message();
  Writer(&out).u32(width);
  return out;
}

int EpochNextRequest::decode(std::string_view bytes, EpochNextRequest* out) {
  Reader reader = open_request(bytes);
  out->width = reader.u32();
  return result(reader.done() && out->width <= limits::width_max);
}

std::string EpochNextReply::encode() const {
  std::string out = new_message();
  Writer(&out).u64(epoch).u64(tail_floor);
  return out;
}

int EpochNextReply::decode(std::string_view bytes, EpochNextReply* out) {
  Reader reader = open_message(bytes);
  out->epoch = reader.u64();
  out->tail_floor = reader.u64();
  return result(reader.done());
}

std::string EpochReadReply::encode() const {
  std::string out = new_message();
  Writer(&out).u64(counter).u64(newest).u64(tail_floor).u64(trim_point).u64(log_id);
  return out;
}

int EpochReadReply::decode(std::string_view bytes, EpochReadReply* out) {
  Reader reader = open_message(bytes);
  out->counter = reader.u64();
  out->newest = reader.u64();
  out->tail_floor = reader.u64();
  out->trim_point = reader.u64();
  out->log_id = reader.u64();
  return result(reader.done());
}

std::string TailRaiseRequest::encode() const {
  std::string out = new_message();
  Writer(&out).u64(log_id).u64(epoch).u64(tail);
  return out;
}

int TailRaiseRequest::decode(std::string_view bytes, TailRaiseRequest* out) {
  Reader reader = open_request(bytes);
  out->log_id = reader.u64();
  out->epoch = reader.u64();
  out->tail = reader.u64();
  return result(reader.done() && out->tail <= limits::position_max + 1);
}

std::string TrimPointRequest::encode() const {
  std::string out = new_message();
  Writer(&out).u64(log_id).u64(position).flag(past_cursors);
  return out;
}

int TrimPointRequest::decode(std::string_view bytes, TrimPointRequest* out) {
  Reader reader = open_request(bytes);
  out->log_id = reader.u64();
  out->position = reader.u64();
  out->past_cursors = reader.flag();
  return result(reader.done() && out->position <= limits::position_max + 1);
}

std::string ViewProposeRequest::encode() const {
  std::string out = new_message();
  Writer(&out).u64(base).string(view);
  return out;
}

int ViewProposeRequest::decode(std::string_view bytes, ViewProposeRequest* out) {
  Reader reader = open_request(bytes);
  out->base = reader.u64();
  out->view = reader.string(limits::view_bytes_max);
  return result(reader.done());
}

std::string ViewReadRequest::encode() const {
  std::string out = new_message();
  Writer(&out).u64(from_epoch).u32(count_max).flag(latest);
  return out;
}

int ViewReadRequest::decode(std::string_view bytes, ViewReadRequest* out) {
  Reader reader = open_request(bytes);
  out->from_epoch = reader.u64();
  out->count_max = reader.u32();
  out->latest = reader.flag();
  return result(reader.done() && out->count_max >= 1 && out->count_max <= limits::views_page_max);
}

std::string ViewReadReply::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  writer.u64(counter).u64(newest).u64(tail_floor).u64(trim_point).u64(log_id).flag(more);
  put(&writer, views);
  return out;
}

int ViewReadReply::decode(std::string_view bytes, ViewReadReply* out) {
  Reader reader = open_message(bytes);
  out->counter = reader.u64();
  out->newest = reader.u64();
  out->tail_floor = reader.u64();
  out->trim_point = reader.u64();
  out->log_id = reader.u64();
  out->more = reader.flag();
  return result(strings(&reader, limits::views_page_max, limits::view_bytes_max, &out->views) &&
                reader.done());
}

std::string DirectoryEntryRequest::encode() const {
  std::string out = new_message();
  Writer(&out).string(name).u64(log_id);
  return out;
}

int DirectoryEntryRequest::decode(std::string_view bytes, DirectoryEntryRequest* out) {
  Reader reader = open_request(bytes);
  out->name = reader.string(limits::log_name_bytes_max);
  out->log_id = reader.u64();
  return result(reader.done() && valid_log_name(out->name));
}

std::string DirectoryListRequest::encode() const {
  std::string out = new_message();
  Writer(&out).string(after).u32(count_max);
  return out;
}

int DirectoryListRequest::decode(std::string_view bytes, DirectoryListRequest* out) {
  Reader reader = open_request(bytes);
  out->after = reader.string(limits::log_name_bytes_max);
  out->count_max = reader.u32();
  return result(reader.done() && (out->after.empty() || valid_log_name(out->after)) &&
                out->count_max >= 1 && out->count_max <= limits::names_page_max);
}

std::string DirectoryListReply::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  writer.flag(more);
  put(&writer, names);
  return out;
}

int DirectoryListReply::decode(std::string_view bytes, DirectoryListReply* out) {
  Reader reader = open_message(bytes);
  out->more = reader.flag();
  return result(
      strings(&reader, limits::names_page_max, limits::log_name_bytes_max, &out->names) &&
      reader.done());
}

std::string AddressMessage::encode() const {
  std::string out = new_message();
  Writer(&out).string(address);
  return out;
}

int AddressMessage::decode(std::string_view bytes, AddressMessage* out) {
  Reader reader = open_message(bytes);
  out->address = reader.string(limits::address_bytes_max);
  return result(reader.done() && valid_address(out->address));
}

}  // namespace zlog
