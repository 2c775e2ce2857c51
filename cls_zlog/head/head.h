#pragma once

#include <string>

#include "cls_zlog/head/head_state.h"

// The methods on a log's head object: the epoch counter, the views, and the tail floor.
namespace zlog::head {

// Creates the head of a new log, without a view. Returns -EEXIST if the head exists already.
Result<Empty> create(Object& object, const NamedLogRequest& request);

// Increments the epoch counter, and returns it with the tail floor. From then on, tail_raise
// refuses earlier epochs. If an object is sealed with a higher epoch `above`, it accepts no lower
// one, so the counter first skips towards it, by up to epochs_ahead_max. If the request has a
// width, the stripe that may be created in this epoch is first recorded as pending
// (stripe_index.h).
Result<EpochNextReply> epoch_next(Object& object, Head& head, const EpochNextRequest& request);

Result<HeadReply> epoch_read(Object& object, const Head& head, const Empty& request);

// Raises the tail floor to `tail`, so that no later epoch starts below it. A client must call this
// before it returns that tail. Returns kStaleEpoch (with the counter) if the epoch is not the
// newest one. Returns kBeyondStripe (with the highest possible tail) if the log needs a new stripe
// first.
Result<Empty> tail_raise(Object& object, Head& head, const TailRaiseRequest& request);

// Raises the trim point, which never falls, without a new epoch. Marks a limited number of the
// archived stripes below it as pending, and returns whether some are left. Returns kHeldByCursor
// (with the lowest cursor) if a cursor is below the position and `past_cursors` is not set. Returns
// kBeyondTail (with the recorded tail) if the position is above it.
Result<MoreReply> trim_point_raise(Object& object, Head& head, const TrimPointRequest& request);

// Accepts a view that is based on the newest view and may follow it. Also succeeds if it already is
// the newest view. Archives the stripes that the view leaves out, or marks them as pending if they
// are not needed. Removes old views. If the view has a new stripe, lowers the tail floor to its
// start. Returns kInvalidEpoch if the epoch is not above the newest view's (with that epoch) or was
// never granted (with the counter). Returns kStaleEpoch (with the newest view's epoch) if the view
// is based on another one. Returns kRequestTooNew if the view is of a later version. Returns
// -EINVAL if the view may not follow the newest one.
Result<Empty> view_propose(Object& object, const ViewProposeRequest& request);

// Returns the views from an epoch on, in ascending order, or only the newest view.
Result<ViewReadReply> view_read(Object& object, const Head& head, const ViewReadRequest& request);

// Removes the head of a log whose newest view marks it as removed. Returns kInvalidEpoch (with the
// newest view's epoch) if the newest view has no such mark, or has another epoch.
Result<Empty> remove(Object& object, const Head& head, const EpochRequest& request);

// Returns the key of the newest view; empty if the head has no view.
std::string newest_key(const Head& head);

// For other methods on a head object. Returns kBeyondStripe (with the highest possible tail) if a
// tail is too far above the start of the newest stripe. This is the only check that is possible,
// because the head does not know which positions are written.
Failure check_tail(Object& object, const Head& head, uint64_t tail);

}  // namespace zlog::head
