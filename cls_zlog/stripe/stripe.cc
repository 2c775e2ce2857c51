#include "cls_zlog/stripe/stripe.h"

#include "cls_zlog/stripe/header.h"

namespace zlog::stripe {
namespace {

// Loads the header of an object that a request of this epoch is about, and lets it in.
Failure enter(Object& object, uint64_t epoch, Header* header) {
  ZLOG_TRY(Header::load(object, header));
  return header->admit(epoch);
}

// Whether a seal of this epoch is admitted: 0 or kInvalidEpoch. A stored one above epoch_max is
// from before there was that limit, and no epoch that any client was given.
Failure check_next(uint64_t epoch, const Header& header) {
  if (header.epoch > limits::epoch_max) return {};
  const bool admitted = header.epoch < epoch && epoch - header.epoch <= limits::epochs_ahead_max;
  return admitted ? Failure{} : Failure{kInvalidEpoch, header.epoch};
}

// Notes where the stripe begins, which never changes. What holds more already, from before it was
// told, is left unbounded: all of it counts.
void set_start(const std::optional<uint64_t>& start, Header* header) {
  if (header->start) return;
  header->start = start;
  if (header->taken().value_or(0) >= header->end()) header->start.reset();
}

}  // namespace

std::vector<Span> spans_of(const std::vector<uint64_t>& positions, const Spacing& spacing) {
  std::vector<Span> spans;
  for (const uint64_t position : positions) {
    if (!spans.empty() && spacing.next(spans.back().last) == position) {
      spans.back().last = position;
    } else {
      spans.push_back({position, position});
    }
  }
  return spans;
}

Result<SealReply> seal(Object& object, const SealRequest& request) {
  Header header;
  const Failure loaded = Header::load(object, &header);
  const bool made = loaded.code == -ENOENT && request.create;
  if (made) {
    // Exclusively: an object without a header that exists was not made by seal, and may hold
    // anything.
    ZLOG_TRY(object.create(true));
    header.stride = request.stride;
    header.residue = request.residue;
    header.unit = request.unit;
  } else {
    ZLOG_TRY(loaded);
    if (request.stride != header.stride || request.residue != header.residue ||
        request.unit != header.unit) {
      return Failure{-EINVAL};
    }
    ZLOG_TRY(check_next(request.epoch, header));
  }
  header.epoch = request.epoch;
  set_start(request.start, &header);
  ZLOG_TRY(header.save(object));
  const Fullness fullness = header.fullness();
  return SealReply{header.taken(), fullness.records, fullness.bytes, header.start, made};
}

Result<HighestReply> max_position(Object& object, const HighestRequest& request) {
  Header header;
  ZLOG_TRY(enter(object, request.epoch, &header));
  return HighestReply{header.taken(), header.unwritten(request.start)};
}

Result<StatReply> stat(Object& object, const EpochRequest& request) {
  Header header;
  ZLOG_TRY(enter(object, request.epoch, &header));
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
  reply.unit = header.unit;
  reply.stored_bytes = header.stored_bytes();
  return reply;
}

Result<Empty> remove(Object& object, const EpochRequest& request) {
  Header header;
  ZLOG_TRY(enter(object, request.epoch, &header));
  ZLOG_TRY(object.remove());
  return Empty();
}

}  // namespace zlog::stripe
