#include "cls_zlog/wire/delivery_messages.h"

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

constexpr uint32_t kGrantBytes = 2 * 8;
constexpr uint32_t kListedBytesMin = 4 + 3 * 8 + 4;  // of one source in a list

void put(Writer* writer, const DeliveryRequest& delivery) {
  writer->u64(delivery.log_id).string(delivery.source).u64(delivery.batch).u32(delivery.part);
}

bool take(Reader* reader, DeliveryRequest* out) {
  out->log_id = reader->u64();
  out->source = reader->string(limits::log_name_bytes_max);
  out->batch = reader->u64();
  out->part = reader->u32();
  return valid_source_name(out->source) && out->batch != batch_all;
}

}  // namespace

std::string DeliveryRequest::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  put(&writer, *this);
  return out;
}

int DeliveryRequest::decode(std::string_view bytes, DeliveryRequest* out) {
  Reader reader = open_request(bytes);
  const bool valid = take(&reader, out);
  return result(reader.done() && valid);
}

std::string DeliveryBeginRequest::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  put(&writer, delivery);
  writer.u64(timestamp);
  return out;
}

int DeliveryBeginRequest::decode(std::string_view bytes, DeliveryBeginRequest* out) {
  Reader reader = open_request(bytes);
  const bool valid = take(&reader, &out->delivery);
  out->timestamp = reader.u64();
  return result(reader.done() && valid);
}

std::string DeliveryBeginReply::encode() const {
  std::string out = new_message();
  Writer(&out).u32(attempt).u32(grants).u64(incarnation);
  return out;
}

int DeliveryBeginReply::decode(std::string_view bytes, DeliveryBeginReply* out) {
  Reader reader = open_message(bytes);
  out->attempt = reader.u32();
  out->grants = reader.u32();
  out->incarnation = reader.u64();
  return result(reader.done());
}

std::string DeliveryGrantRequest::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  put(&writer, delivery);
  writer.u64(incarnation).u32(attempt).u64(epoch).u64(first).u32(count).flag(reserve);
  return out;
}

int DeliveryGrantRequest::decode(std::string_view bytes, DeliveryGrantRequest* out) {
  Reader reader = open_request(bytes);
  const bool valid = take(&reader, &out->delivery);
  out->incarnation = reader.u64();
  out->attempt = reader.u32();
  out->epoch = reader.u64();
  out->first = reader.u64();
  out->count = reader.u32();
  out->reserve = reader.flag();
  return result(reader.done() && valid && out->count >= 1 &&
                out->count <= limits::entries_max && out->first <= limits::position_max &&
                out->count - 1 <= limits::position_max - out->first);
}

std::string DeliveryReadReply::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  writer.u64(incarnation).u32(attempt).u32(static_cast<uint32_t>(grants.size()));
  for (const Grant& grant : grants) writer.u64(grant.first).u64(grant.count);
  return out;
}

int DeliveryReadReply::decode(std::string_view bytes, DeliveryReadReply* out) {
  Reader reader = open_message(bytes);
  out->incarnation = reader.u64();
  out->attempt = reader.u32();
  const uint32_t count = reader.u32();
  if (count > reader.rest().size() / kGrantBytes) return -EINVAL;
  out->grants.clear();
  out->grants.reserve(count);
  for (uint32_t i = 0; i < count; i++) {
    Grant& grant = out->grants.emplace_back();
    grant.first = reader.u64();
    grant.count = reader.u64();
  }
  return result(reader.done());
}

std::string DeliveryDoneRequest::encode() const {
  std::string out = new_message();
  Writer(&out).u64(log_id).string(source).u64(batch).u64(incarnation).u64(timestamp);
  return out;
}

int DeliveryDoneRequest::decode(std::string_view bytes, DeliveryDoneRequest* out) {
  Reader reader = open_request(bytes);
  out->log_id = reader.u64();
  out->source = reader.string(limits::log_name_bytes_max);
  out->batch = reader.u64();
  out->incarnation = reader.u64();
  out->timestamp = reader.u64();
  return result(reader.done() && valid_source_name(out->source));
}

std::string DeliveryListRequest::encode() const {
  std::string out = new_message();
  Writer(&out).u64(log_id).string(after).u32(count_max);
  return out;
}

int DeliveryListRequest::decode(std::string_view bytes, DeliveryListRequest* out) {
  Reader reader = open_request(bytes);
  out->log_id = reader.u64();
  out->after = reader.string(limits::log_name_bytes_max);
  out->count_max = reader.u32();
  return result(reader.done() && (out->after.empty() || valid_source_name(out->after)) &&
                out->count_max >= 1 && out->count_max <= limits::sources_max);
}

std::string DeliveryListReply::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  writer.flag(more).u32(static_cast<uint32_t>(sources.size()));
  for (const auto& [name, source] : sources) {
    writer.string(name).u64(source.batch).u32(source.parts);
    writer.u64(source.created).u64(source.updated);
  }
  return out;
}

int DeliveryListReply::decode(std::string_view bytes, DeliveryListReply* out) {
  Reader reader = open_message(bytes);
  out->more = reader.flag();
  const uint32_t count = reader.u32();
  if (count > reader.rest().size() / kListedBytesMin) return -EINVAL;
  out->sources.clear();
  out->sources.reserve(count);
  for (uint32_t i = 0; i < count; i++) {
    auto& [name, source] = out->sources.emplace_back();
    name = reader.string(limits::log_name_bytes_max);
    source.batch = reader.u64();
    source.parts = reader.u32();
    source.created = reader.u64();
    source.updated = reader.u64();
  }
  return result(reader.done());
}

}  // namespace zlog
