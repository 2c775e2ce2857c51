#include "cls_zlog/stripe/stripe.h"

namespace zlog::stripe {
namespace {

// Returns 0 or kInvalidEpoch. A stored epoch above epoch_max is older than this limit, and was
// never granted to a client.
Failure check_next(uint64_t epoch, const Header& header) {
  if (header.epoch > limits::epoch_max) return {};
  const bool admitted = header.epoch < epoch && epoch - header.epoch <= limits::epochs_ahead_max;
  return admitted ? Failure{} : Failure{kInvalidEpoch, header.epoch};
}

// Sets the stripe's start, once. If the object has positions beyond the bound, it stays unbounded.
void set_start(const std::optional<uint64_t>& start, Header* header) {
  if (header->start) return;
  header->start = start;
  if (header->taken().value_or(0) >= header->end()) header->start.reset();
}

}  // namespace

Result<SealReply> seal(Object& object, const SealRequest& request) {
  Header header;
  const Failure loaded = Header::load(object, &header);
  const bool made = loaded.code == -ENOENT && request.create;
  if (made) {
    // Exclusive, since an existing object without a header was not created by seal.
    ZLOG_TRY(object.create(true));
    header.stride = request.stride;
    header.residue = request.residue;
    header.stripe_unit = request.stripe_unit;
  } else {
    ZLOG_TRY(loaded);
    if (request.stride != header.stride || request.residue != header.residue ||
        request.stripe_unit != header.stripe_unit) {
      return Failure{-EINVAL};
    }
    ZLOG_TRY(check_next(request.epoch, header));
  }
  header.epoch = request.epoch;
  set_start(request.start, &header);
  ZLOG_TRY(header.save(object));
  return SealReply{header.fullness(), header.taken(), header.start, made};
}

Result<HighestReply> max_position(Object&, const Header& header, const HighestRequest& request) {
  return HighestReply{header.taken(), header.unwritten(request.start)};
}

Result<StatReply> stat(Object&, const Header& header, const EpochRequest&) {
  return StatReply{header.epoch,   header.taken(),     header.trim_point,     header.entries,
                   header.bytes,   header.records,     header.stream_end,     header.stride,
                   header.residue, header.stripe_unit, header.stored_bytes(), header.frozen};
}

Result<Empty> freeze(Object& object, Header& header, const EpochRequest&) {
  if (header.frozen) return Empty();
  header.frozen = true;
  return failure_of(header.save(object));
}

Result<Empty> remove(Object& object, Header&, const EpochRequest&) {
  return failure_of(object.remove());
}

}  // namespace zlog::stripe
