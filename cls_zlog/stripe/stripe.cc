#include "cls_zlog/stripe/stripe.h"

#include <cerrno>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/wire/messages.h"

namespace zlog::stripe {
namespace {

// Decodes a request that is an epoch alone, and lets it in.
int enter(Object& object, std::string_view in, Header* header, EpochRequest* request,
          std::string* out) {
  if (const int r = EpochRequest::decode(in, request); r < 0) return r;
  if (const int r = Header::load(object, header); r < 0) return r;
  return check_epoch(*header, request->epoch, out);
}

int make(Object& object, const SealRequest& request, std::string* out) {
  // Exclusively: an object without a header that exists was not made by seal, and may hold
  // anything.
  if (const int r = object.create(true); r < 0) return r;
  Header header;
  header.epoch = request.epoch;
  header.stride = request.stride;
  header.residue = request.residue;
  *out = SealReply{header.taken(), header.fullness()}.encode();
  return header.save(object);
}

}  // namespace

int check_epoch(const Header& header, uint64_t epoch, std::string* out) {
  if (epoch >= header.epoch) return kOk;
  *out = encode_epoch_reply(header.epoch);
  return kStaleEpoch;
}

std::vector<Span> spans_of(const std::vector<uint64_t>& positions, uint32_t stride) {
  std::vector<Span> spans;
  for (const uint64_t position : positions) {
    if (!spans.empty() && spans.back().last + stride == position) {
      spans.back().last = position;
    } else {
      spans.push_back({position, position});
    }
  }
  return spans;
}

int seal(Object& object, std::string_view in, std::string* out) {
  SealRequest request;
  if (const int r = SealRequest::decode(in, &request); r < 0) return r;
  Header header;
  const int r = Header::load(object, &header);
  if (r == -ENOENT && request.create) return make(object, request, out);
  if (r < 0) return r;
  if (request.stride != header.stride || request.residue != header.residue) return -EINVAL;
  if (request.epoch <= header.epoch) {
    *out = encode_epoch_reply(header.epoch);
    return kInvalidEpoch;
  }
  header.epoch = request.epoch;
  *out = SealReply{header.taken(), header.fullness()}.encode();
  return header.save(object);
}

int max_position(Object& object, std::string_view in, std::string* out) {
  Header header;
  EpochRequest request;
  if (const int r = enter(object, in, &header, &request, out); r != kOk) return r;
  *out = header.taken().encode();
  return kOk;
}

int stat(Object& object, std::string_view in, std::string* out) {
  Header header;
  EpochRequest request;
  if (const int r = enter(object, in, &header, &request, out); r != kOk) return r;
  StatReply reply;
  reply.object_epoch = header.epoch;
  reply.highest = header.taken();
  reply.trim_point = header.trim_point;
  reply.entries = header.entries;
  reply.bytes = header.bytes;
  reply.records = header.records;
  reply.stream_bytes = header.stream_end;
  reply.stride = header.stride;
  reply.residue = header.residue;
  *out = reply.encode();
  return kOk;
}

int remove(Object& object, std::string_view in, std::string* out) {
  Header header;
  EpochRequest request;
  if (const int r = enter(object, in, &header, &request, out); r != kOk) return r;
  return object.remove();
}

}  // namespace zlog::stripe
