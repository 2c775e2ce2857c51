#pragma once

#include <string>

#include "cls_zlog/head/head_state.h"

// The methods on a log's head object: the epoch counter, the views, and the tail floor.
namespace zlog::head {

// Creates the head of a new log, without a view. Returns -EEXIST if the head exists already.
Result<Empty> create(Object& object, const NamedLogRequest& request);

// Increments the epoch counter, and returns the new epoch together with the tail floor. From then
// on, tail_raise refuses requests of earlier epochs. If the client found an object that is sealed
// with a higher epoch, it passes that epoch as `above`, and the counter first skips up to
// epochs_ahead_max epochs towards it. If the request has a width, the client may create a stripe in
// the new epoch, so the stripe is first recorded as pending (stripe_index.h).
Result<EpochNextReply> epoch_next(Object& object, Head& head, const EpochNextRequest& request);

Result<HeadReply> epoch_read(Object& object, const Head& head, const Empty& request);

// Raises the tail floor to `tail`, so that no later epoch starts below it. A client must call this
// before it returns that tail to its caller. Returns kStaleEpoch (with the counter) if the
// request's epoch is not the newest one, and kBeyondStripe (with the highest possible tail) if the
// log must first get a new stripe.
Result<Empty> tail_raise(Object& object, Head& head, const TailRaiseRequest& request);

// Raises the trim point, which never falls; this needs no new epoch. Archived stripes that are now
// below the trim point become pending. One call changes a limited number of them, and returns
// whether more are left. Returns kHeldByCursor (with the lowest cursor) if the trim point would
// pass a cursor and `past_cursors` is not set. Returns kBeyondTail (with the recorded tail) if the
// trim point would pass the tail.
Result<MoreReply> trim_point_raise(Object& object, Head& head, const TrimPointRequest& request);

// Makes a view the newest one if it is based on the current newest view and is a valid successor.
// Proposing the newest view again also succeeds. Stripes that the view leaves out are archived, or
// become pending if none of their positions is needed. If the view has a new stripe, the tail floor
// is lowered to the stripe's start.
//
// Returns kInvalidEpoch if the view's epoch was never granted (with the counter) or is not above
// the newest view's epoch (with that epoch). Returns kStaleEpoch (with the newest view's epoch) if
// another view was accepted in the meantime, kRequestTooNew if a later version of zlog made the
// view, and -EINVAL if the view is not a valid successor.
Result<Empty> view_propose(Object& object, const ViewProposeRequest& request);

// Returns the views from an epoch on, in ascending order, or only the newest view.
Result<ViewReadReply> view_read(Object& object, const Head& head, const ViewReadRequest& request);

// Removes the head of a log that is marked as removed in its newest view. Returns kInvalidEpoch
// (with the newest view's epoch) if the mark is missing or the view has another epoch than the
// request.
Result<Empty> remove(Object& object, const Head& head, const EpochRequest& request);

// Returns the key of the newest view; empty if the head has no view.
std::string newest_key(const Head& head);

// Checks a tail for other methods on a head object. Returns kBeyondStripe (with the highest
// possible tail) if the tail is too far above the start of the newest stripe. The head can check no
// more than this, because it does not know which positions are written.
Failure check_tail(Object& object, const Head& head, uint64_t tail);

}  // namespace zlog::head
