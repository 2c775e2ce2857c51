#include "cls_zlog/head/head.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "cls_zlog/base/striping.h"
#include "cls_zlog/head/cursors.h"
#include "cls_zlog/head/omap_table.h"
#include "cls_zlog/head/stripe_index.h"

namespace zlog::head {
namespace {

constexpr uint64_t kViewsPerListing = 16;  // each up to view_bytes_max

// A stored view. Its bytes are those that were proposed, including fields of later versions.
struct StoredView {
  std::string bytes;

  ZLOG_FIELDS(v) { v("view", bytes, at_most(limits::view_bytes_max)); }
};

constexpr OmapTable<StoredView> kViews("v.");

// The newest view, as bytes and decoded. Both are empty if there is none.
struct Newest {
  std::string bytes;
  View view;
};

// -EIO: the view that the head names is missing.
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
  return wire::failure_of(wire::decode(out->bytes, &out->view), -EIO,
                          {kStoredTooNew, wire::compat_of(out->bytes)});
}

// What a new view changes.
struct Succession {
  std::vector<Stripe> left;      // stripes that are no longer in the view, each with its end
  const Stripe* made = nullptr;  // the view's last stripe, if it is new
};

// Returns whether `next` is a valid successor of `base`, which is nullptr for the log's first view.
// `next` must have the stripes of `base`, but may leave out some of the first ones. It may end the
// last stripe and add a new one, whose id is the new epoch. An ended stripe without positions must
// be left out. The first view has one stripe, from position 0. A removed log stays removed, and
// offloads stay allowed.
bool may_follow(const View& next, const View* base, Succession* out) {
  const Stripe& last = next.stripes.back();
  const bool makes = last.id == next.epoch;
  if (makes) out->made = &last;
  if (base == nullptr) return makes && next.stripes.size() == 1 && last.start == 0;
  if (next.log_id != base->log_id) return false;
  if (base->state == LogState::kRemoved && next.state != LogState::kRemoved) return false;
  if (base->offloads && !next.offloads) return false;
  std::vector<Stripe> all = base->stripes;
  if (makes) {
    Stripe ended = all.back();
    all.pop_back();
    if (last.start < ended.start) return false;
    ended.end = last.start;
    (ended.valid() ? all : out->left).push_back(ended);
    all.push_back(last);
  }
  if (next.stripes.size() > all.size()) return false;
  const auto kept = all.end() - static_cast<std::ptrdiff_t>(next.stripes.size());
  out->left.insert(out->left.end(), all.begin(), kept);
  return std::equal(kept, all.end(), next.stripes.begin());
}

// Stores a view, and removes old ones, in which no client works any more.
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
    const uint64_t left = request.count_max - reply->views.size();
    ZLOG_TRY(kViews.list(object, after, std::min(left, kViewsPerListing), &reply->more,
                         [&](const std::string& name, StoredView view) {
                           bytes += view.bytes.size();
                           reply->views.push_back(std::move(view.bytes));
                           after = kViews.key(name);
                         }));
  }
  return {};
}

// Returns kBeyondTail if the trim point would pass the recorded tail, because entries that are
// later appended below it would never be read. The first copy into a mirror may begin anywhere.
Failure check_trim_point(Object& object, const Head& head, uint64_t position) {
  if (position <= head.tail_floor) return {};
  Newest newest;
  ZLOG_TRY(load_newest(object, head, &newest));
  uint64_t tail = head.tail_floor;
  if (head.newest != 0) tail = std::max(tail, newest.view.stripes.back().start);
  return position <= tail || newest.view.mirror() ? Failure{} : Failure{kBeyondTail, tail};
}

}  // namespace

Failure load_newest(Object& object, const Head& head, View* out) {
  Newest newest;
  ZLOG_TRY(load_newest(object, head, &newest));
  if (head.newest != 0) *out = std::move(newest.view);
  return {};
}

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

Result<Empty> create(Object& object, const NamedLogRequest& request) {
  ZLOG_TRY(object.create(true));
  Head head;
  head.log_id = request.log_id;
  head.name = request.name;
  return failure_of(head.save(object));
}

Result<EpochNextReply> epoch_next(Object& object, Head& head, const EpochNextRequest& request) {
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

Result<HeadReply> epoch_read(Object&, const Head& head, const Empty&) { return HeadReply(head); }

Result<Empty> tail_raise(Object& object, Head& head, const TailRaiseRequest& request) {
  if (request.epoch != head.counter) return Failure{kStaleEpoch, head.counter};
  if (request.tail <= head.tail_floor) return Empty();
  ZLOG_TRY(check_tail(object, head, request.tail));
  head.tail_floor = request.tail;
  return failure_of(head.save(object));
}

Result<MoreReply> trim_point_raise(Object& object, Head& head, const TrimPointRequest& request) {
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
  ZLOG_TRY(wire::failure_of(wire::decode(request.view, &next), -EINVAL,
                            {kRequestTooNew, wire::compat_of(request.view)}));
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
  // A new stripe starts at the tail, which is not below any tail that a client recorded in an
  // earlier epoch. If the floor is higher, a client without a view must have raised it since then.
  if (succession.made != nullptr) {
    head.tail_floor = std::min(head.tail_floor, succession.made->start);
  }
  return failure_of(head.save(object));
}

Result<ViewReadReply> view_read(Object& object, const Head& head, const ViewReadRequest& request) {
  ViewReadReply reply{head, false, {}};
  if (!request.latest) {
    ZLOG_TRY(list_views(object, request, &reply));
  } else if (head.newest != 0) {
    ZLOG_TRY(load_newest(object, head, &reply.views.emplace_back()));
  }
  return reply;
}

Result<Empty> remove(Object& object, const Head& head, const EpochRequest& request) {
  Newest newest;
  ZLOG_TRY(load_newest(object, head, &newest));
  const bool removed = head.newest != 0 && newest.view.state == LogState::kRemoved;
  if (!removed || request.epoch != head.newest) return Failure{kInvalidEpoch, head.newest};
  return failure_of(object.remove());
}

}  // namespace zlog::head
