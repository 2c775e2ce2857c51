#include "cls_zlog/wire/stripe_index_messages.h"

#include <cerrno>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/wire/wire.h"

namespace zlog {
namespace {

using wire::new_message;
using wire::open_message;
using wire::open_request;
using wire::Reader;
using wire::result;
using wire::Writer;

constexpr uint32_t kLooseBytes = 8 + 4;

bool valid_page(uint32_t count) { return count >= 1 && count <= limits::stripes_page_max; }

}  // namespace

std::string StripesReadRequest::encode() const {
  std::string out = new_message();
  Writer(&out).u64(log_id).u64(position).u32(count_max);
  return out;
}

int StripesReadRequest::decode(std::string_view bytes, StripesReadRequest* out) {
  Reader reader = open_request(bytes);
  out->log_id = reader.u64();
  out->position = reader.u64();
  out->count_max = reader.u32();
  return result(reader.done() && out->position <= limits::position_max &&
                valid_page(out->count_max));
}

std::string StripesReadReply::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  writer.flag(more);
  encode_stripes(stripes, &writer);
  return out;
}

int StripesReadReply::decode(std::string_view bytes, StripesReadReply* out) {
  Reader reader = open_message(bytes);
  out->more = reader.flag();
  return result(decode_stripes(&reader, limits::stripes_page_max, &out->stripes) && reader.done());
}

std::string StripesLooseRequest::encode() const {
  std::string out = new_message();
  Writer(&out).u64(log_id).u64(after_id).u32(count_max);
  return out;
}

int StripesLooseRequest::decode(std::string_view bytes, StripesLooseRequest* out) {
  Reader reader = open_request(bytes);
  out->log_id = reader.u64();
  out->after_id = reader.u64();
  out->count_max = reader.u32();
  return result(reader.done() && valid_page(out->count_max));
}

std::string StripesLooseReply::encode() const {
  std::string out = new_message();
  Writer writer(&out);
  writer.u64(newest).flag(more).u32(static_cast<uint32_t>(stripes.size()));
  for (const LooseStripe& stripe : stripes) writer.u64(stripe.id).u32(stripe.width);
  return out;
}

int StripesLooseReply::decode(std::string_view bytes, StripesLooseReply* out) {
  Reader reader = open_message(bytes);
  out->newest = reader.u64();
  out->more = reader.flag();
  const uint32_t count = reader.u32();
  if (count > limits::stripes_page_max || count > reader.rest().size() / kLooseBytes) {
    return -EINVAL;
  }
  out->stripes.resize(count);
  for (LooseStripe& stripe : out->stripes) {
    stripe.id = reader.u64();
    stripe.width = reader.u32();
  }
  return result(reader.done());
}

std::string StripeForgetRequest::encode() const {
  std::string out = new_message();
  Writer(&out).u64(log_id).u64(id);
  return out;
}

int StripeForgetRequest::decode(std::string_view bytes, StripeForgetRequest* out) {
  Reader reader = open_request(bytes);
  out->log_id = reader.u64();
  out->id = reader.u64();
  return result(reader.done());
}

}  // namespace zlog
