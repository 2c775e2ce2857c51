#include "cls_zlog/head/head.h"

#include <algorithm>
#include <optional>

#include "cls_zlog/base/span.h"
#include "cls_zlog/head/cursors.h"
#include "cls_zlog/head/head_state.h"
#include "cls_zlog/head/omap_table.h"
#include "cls_zlog/head/stripe_index.h"
#include "cls_zlog/head/succession.h"

namespace zlog::head {
namespace {

constexpr uint64_t kViewsPerListing = 16;  // each up to view_bytes_max

// A view as it was proposed, by its epoch: what a later version put into it is still there.
struct StoredView {
  std::string bytes;

  template <typename V>
  void each(V& v) {
    v("view", bytes, at_most(limits::view_bytes_max));
  }
};

constexpr OmapTable<StoredView> kViews("v.");

// The newest view as bytes and decoded; both empty when there is none.
struct Newest {
  std::string bytes;
  View view;
};

// The newest view's bytes, which must be there: it is in the head.
Failure load_newest(Object& object, const Head& head, std::string* out) {
  StoredView stored;
  const Failure loaded = kViews.get(object, newest_key(head), &stored);
  if (loaded.code == -ENOENT) return {-EIO};
  ZLOG_TRY(loaded);
  *out = std::move(stored.bytes);
  return {};
}

Failure load_newest(Object& object, const Head& head, Newest* out) {
  if (head.newest == 0) return {};
  ZLOG_TRY(load_newest(object, head, &out->bytes));
  switch (wire::decode(out->bytes, &out->view)) {
    case wire::Decoded::kOk:
      return {};
    case wire::Decoded::kTooNew:
      return {kStoredTooNew, wire::compat_of(out->bytes)};
    case wire::Decoded::kMalformed:
      break;
  }
  return {-EIO};
}

// Stores a view, and removes those of epochs long ago, in which no client works.
int put_view(Object& object, uint64_t epoch, std::string_view view) {
  ZLOG_TRY(kViews.put(object, kViews.key(epoch), {std::string(view)}));
  if (epoch <= limits::views_kept_max) return 0;
  const uint64_t kept = epoch - limits::views_kept_max + 1;
  return object.omap_remove_range(kViews.key(uint64_t{0}), kViews.key(kept));
}

// Adds views from `from_epoch` on until the reply is full.
Failure list_views(Object& object, const ViewReadRequest& request, ViewReadReply* reply) {
  std::string after = kViews.key_before(request.from_epoch);
  uint64_t bytes = 0;
  reply->more = true;
  while (reply->more && reply->views.size() < request.count_max &&
         bytes < limits::read_reply_bytes_max) {
    std::vector<OmapTable<StoredView>::Row> rows;
    const uint64_t left = request.count_max - reply->views.size();
    ZLOG_TRY(kViews.list(object, after, std::min(left, kViewsPerListing), &rows, &reply->more));
    for (auto& [name, view] : rows) {
      bytes += view.bytes.size();
      reply->views.push_back(std::move(view.bytes));
      after = kViews.key(name);
    }
  }
  return {};
}

// What is below the trim point is hidden from readers, now and later: so it does not pass what is
// known to be handed out. A mirror's first copy may begin anywhere.
Failure check_trim_point(Object& object, const Head& head, uint64_t position) {
  if (position <= head.tail_floor) return {};
  Newest newest;
  ZLOG_TRY(load_newest(object, head, &newest));
  uint64_t tail = head.tail_floor;
  if (head.newest != 0) tail = std::max(tail, newest.view.stripes.back().start);
  return position <= tail || newest.view.mirror() ? Failure{} : Failure{kBeyondTail, tail};
}

void tell(const Head& head, HeadReply* reply) {
  reply->counter = head.counter;
  reply->newest = head.newest;
  reply->tail_floor = head.tail_floor;
  reply->trim_point = head.trim_point;
  reply->log_id = head.log_id;
}

}  // namespace

std::string newest_key(const Head& head) {
  return head.newest == 0 ? std::string() : kViews.key(head.newest);
}

Failure check_tail(Object& object, const Head& head, uint64_t tail) {
  if (head.newest == 0 || tail <= head.tail_floor) return {};
  Newest newest;
  ZLOG_TRY(load_newest(object, head, &newest));
  const Stripe& live = newest.view.stripes.back();
  const uint64_t tail_max = end_of(live.start, limits::object_tail_max * live.width);
  return tail <= tail_max ? Failure{} : Failure{kBeyondStripe, tail_max};
}

Result<Empty> create(Object& object, const HeadCreateRequest& request) {
  ZLOG_TRY(object.create(true));
  Head head;
  head.log_id = request.log_id;
  head.name = request.name;
  ZLOG_TRY(head.save(object));
  return Empty();
}

Result<EpochNextReply> epoch_next(Object& object, const EpochNextRequest& request) {
  Head head;
  ZLOG_TRY(Head::load(object, &head));
  const uint64_t reached = std::min(request.above, head.counter + limits::epochs_ahead_max);
  head.counter = std::max(head.counter, reached);
  if (head.counter >= limits::epoch_max) return Failure{-ERANGE};
  head.counter++;
  if (request.width != 0) {
    ZLOG_TRY(stripe_index::announce(object, head.counter, request.width));
  }
  ZLOG_TRY(head.save(object));
  return EpochNextReply{head.counter, head.tail_floor};
}

Result<HeadReply> epoch_read(Object& object, const Empty&) {
  Head head;
  ZLOG_TRY(Head::load(object, &head));
  HeadReply reply;
  tell(head, &reply);
  return reply;
}

Result<Empty> tail_raise(Object& object, const TailRaiseRequest& request) {
  Head head;
  ZLOG_TRY(Head::load(object, request.log_id, &head));
  if (request.epoch != head.counter) return Failure{kStaleEpoch, head.counter};
  if (request.tail <= head.tail_floor) return Empty();
  ZLOG_TRY(check_tail(object, head, request.tail));
  head.tail_floor = request.tail;
  ZLOG_TRY(head.save(object));
  return Empty();
}

Result<MoreReply> trim_point_raise(Object& object, const TrimPointRequest& request) {
  Head head;
  ZLOG_TRY(Head::load(object, request.log_id, &head));
  const bool raised = request.position > head.trim_point;
  if (raised) ZLOG_TRY(check_trim_point(object, head, request.position));
  if (raised && !request.past_cursors) {
    std::optional<uint64_t> held;
    ZLOG_TRY(cursors::lowest(object, &held));
    if (held && *held < request.position) return Failure{kHeldByCursor, *held};
  }
  if (raised) head.trim_point = request.position;
  MoreReply reply;
  ZLOG_TRY(stripe_index::trim_to(object, head.trim_point, &reply.more));
  if (raised) ZLOG_TRY(head.save(object));
  return reply;
}

Result<Empty> view_propose(Object& object, const ViewProposeRequest& request) {
  View next;
  switch (wire::decode(request.view, &next)) {
    case wire::Decoded::kOk:
      break;
    case wire::Decoded::kTooNew:
      return Failure{kRequestTooNew, wire::compat_of(request.view)};
    case wire::Decoded::kMalformed:
      return Failure{-EINVAL};
  }
  Head head;
  ZLOG_TRY(Head::load(object, &head));
  Newest newest;
  ZLOG_TRY(load_newest(object, head, &newest));
  if (newest.bytes == request.view) return Empty();
  if (next.epoch <= head.newest) return Failure{kInvalidEpoch, head.newest};
  if (next.epoch > head.counter) return Failure{kInvalidEpoch, head.counter};
  if (request.base != head.newest) return Failure{kStaleEpoch, head.newest};
  if (next.log_id != head.log_id) return Failure{-EINVAL};
  const View* base = head.newest == 0 ? nullptr : &newest.view;
  Succession succession;
  if (!may_follow(next, base, &succession)) return Failure{-EINVAL};
  ZLOG_TRY(stripe_index::end_announcement(object, next.epoch, succession.made));
  for (const Stripe& stripe : succession.left) {
    ZLOG_TRY(stripe_index::leave(object, stripe, head.trim_point));
  }
  ZLOG_TRY(put_view(object, next.epoch, request.view));
  head.newest = next.epoch;
  // A new stripe starts at the tail, which is at or above every one that was recorded before its
  // epoch. What has raised the floor since is no client of a view.
  if (succession.made != nullptr) {
    head.tail_floor = std::min(head.tail_floor, succession.made->start);
  }
  ZLOG_TRY(head.save(object));
  return Empty();
}

Result<ViewReadReply> view_read(Object& object, const ViewReadRequest& request) {
  Head head;
  ZLOG_TRY(Head::load(object, &head));
  ViewReadReply reply;
  tell(head, &reply);
  if (!request.latest) {
    ZLOG_TRY(list_views(object, request, &reply));
  } else if (head.newest != 0) {
    ZLOG_TRY(load_newest(object, head, &reply.views.emplace_back()));
  }
  return reply;
}

Result<Empty> remove(Object& object, const EpochRequest& request) {
  Head head;
  ZLOG_TRY(Head::load(object, &head));
  Newest newest;
  ZLOG_TRY(load_newest(object, head, &newest));
  const bool removed = head.newest != 0 && newest.view.state == LogState::kRemoved;
  if (!removed || request.epoch != head.newest) return Failure{kInvalidEpoch, head.newest};
  ZLOG_TRY(object.remove());
  return Empty();
}

}  // namespace zlog::head
