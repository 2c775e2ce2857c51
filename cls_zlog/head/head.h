#pragma once

#include <string>

#include "cls_zlog/head/head_state.h"

// The methods on a log's head object: the epoch counter, the views, and the tail floor.
namespace zlog::head {

// Makes the head of a new log, without a view. -EEXIST: it exists.
Result<Empty> create(Object& object, const NamedLogRequest& request);

// Increments the epoch counter and answers it, with the tail floor. From then on tail_raise refuses
// earlier epochs. The counter first skips up to epochs_ahead_max epochs up to `above`, since an object
// sealed with that epoch accepts no lower one. If the request has a width, the stripe that may be made
// in this epoch is noted as pending (stripe_index.h) before any of its objects exists.
Result<EpochNextReply> epoch_next(Object& object, Head& head, const EpochNextRequest& request);

Result<HeadReply> epoch_read(Object& object, const Head& head, const Empty& request);

// Raises the tail floor to a tail before a client returns it, so that no later epoch starts below
// it. kStaleEpoch (with the counter): the epoch is not the newest one. kBeyondStripe (with the
// highest possible tail): a new stripe has to start first.
Result<Empty> tail_raise(Object& object, Head& head, const TailRaiseRequest& request);

// Raises the trim point, which never falls; its epoch stays the same. Makes a bounded number of
// archived stripes below it pending; answers whether some are left. kHeldByCursor (with the lowest
// cursor): a cursor is below it, and the request does not pass cursors. kBeyondTail (with the
// recorded tail).
Result<MoreReply> trim_point_raise(Object& object, Head& head, const TrimPointRequest& request);

// Accepts a view that was made from the newest one and may follow it; kOk also if it is the newest
// view already. The stripes that it leaves out are archived, or made pending if nothing in them is
// needed, and old views are removed. With a new stripe the tail floor is lowered to its start.
// kInvalidEpoch: the epoch is not above the newest view's (comes with that), or was never granted
// (with the counter). kStaleEpoch (with the newest view's epoch): it was made from another view.
// kRequestTooNew: the view is of a later version. -EINVAL: it may not follow.
Result<Empty> view_propose(Object& object, const ViewProposeRequest& request);

// Views, ascending from an epoch on, or the newest one.
Result<ViewReadReply> view_read(Object& object, const Head& head, const ViewReadRequest& request);

// Removes the head of a removed log. kInvalidEpoch (with the newest view's epoch): the newest view
// does not mark the log as removed, or has another epoch.
Result<Empty> remove(Object& object, const Head& head, const EpochRequest& request);

// The key of the newest view; empty if the head has none.
std::string newest_key(const Head& head);

// For other methods on a head object: kBeyondStripe (with the highest possible tail) if a tail is
// too far above the start of the live stripe. The head does not know the written positions.
Failure check_tail(Object& object, const Head& head, uint64_t tail);

}  // namespace zlog::head
