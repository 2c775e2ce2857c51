#pragma once

#include <string>

#include "cls_zlog/head/head_state.h"

// The methods on a log's head object: the epoch counter, the views, and the tail floor.
namespace zlog::head {

// Creates the head of a new log, without a view. Returns -EEXIST if the head exists already.
Result<Empty> create(Object& object, const NamedLogRequest& request);

// Begins a new epoch: increments the epoch counter, and returns it together with the tail floor.
// From then on, tail_raise refuses requests of earlier epochs. If the request has a width, the
// client may create a stripe in the new epoch, so the stripe is recorded as pending
// (stripe_index.h). If the client found an object whose epoch exceeds the counter, it passes this
// epoch as `above`. The counter is then first raised to `above`, but by at most epochs_ahead_max.
Result<EpochNextReply> epoch_next(Object& object, Head& head, const EpochNextRequest& request);

Result<HeadReply> epoch_read(Object& object, const Head& head, const Empty& request);

// Raises the tail floor to `tail`, so that no later epoch starts below it. A client must call this
// before it returns that tail to its caller. Returns kStaleEpoch (with the counter) if the
// request's epoch is not the newest, and kBeyondStripe (with the highest possible tail) if the log
// needs a new stripe first.
Result<Empty> tail_raise(Object& object, Head& head, const TailRaiseRequest& request);

// Raises the trim point if it is below the requested position. Archived stripes below it become
// pending. One call changes a limited number of stripes, and returns whether more are left. Returns
// kHeldByCursor (with the lowest cursor) if the trim point would pass a cursor and `past_cursors`
// is not set, and kBeyondTail (with the recorded tail) if it would pass the tail.
Result<MoreReply> trim_point_raise(Object& object, Head& head, const TrimPointRequest& request);

// Makes a view the newest one. It must be based on the current newest view and be a valid
// successor; proposing the newest view again also succeeds. Stripes that the view leaves out are
// archived, or become pending if none of their positions is needed. A new stripe in the view lowers
// the tail floor to the stripe's start. Returns
//   kInvalidEpoch   the view's epoch was never granted (with the counter), or is not above that of
//                   the newest view (with that epoch)
//   kStaleEpoch     (with the newest view's epoch) another view was accepted in the meantime
//   kRequestTooNew  a later version of zlog made the view
//   -EINVAL         the view is not a valid successor
Result<Empty> view_propose(Object& object, const ViewProposeRequest& request);

// Returns the views from an epoch on, in ascending order, or only the newest view.
Result<ViewReadReply> view_read(Object& object, const Head& head, const ViewReadRequest& request);

// Removes the head of a log that is marked as removed. Returns kInvalidEpoch (with the newest
// view's epoch) if the newest view lacks this mark, or if its epoch differs from the request's.
Result<Empty> remove(Object& object, const Head& head, const EpochRequest& request);

// Loads the newest view. `out` does not change if the head has no view.
Failure load_newest(Object& object, const Head& head, View* out);

// Returns the key of the newest view; empty if the head has no view.
std::string newest_key(const Head& head);

// Returns kBeyondStripe (with the highest possible tail) if `tail` is too far above the start of
// the newest stripe. Other methods call this before they raise the tail floor. The head cannot
// check more, because it does not know which positions are written.
Failure check_tail(Object& object, const Head& head, uint64_t tail);

}  // namespace zlog::head
