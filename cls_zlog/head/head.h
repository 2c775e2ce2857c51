#pragma once

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/head/head_state.h"
#include "cls_zlog/wire/head_messages.h"

// The methods on a log's head object: the epoch counter, the views, and a floor for the tail. All
// answer -ENOENT when the log does not exist, -EIO when stored bytes are damaged, and kStoredTooNew
// when they are of a later version.
namespace zlog::head {

// Makes the head of a new log: counter 0, no view. -EEXIST: there is one.
Result<Empty> create(Object& object, const HeadCreateRequest& request);

// Hands out the next epoch: adds one to the durable counter and answers it, with the tail floor.
// The counter first skips, up to epochs_ahead_max of them, those up to an epoch that an object is
// sealed with: no client was given it, and no other seal of that object would be accepted. After
// that no tail_raise of an earlier epoch succeeds. With a width, the stripe that may be made for
// this epoch is noted as loose (stripe_index.h), before any of its objects exists.
Result<EpochNextReply> epoch_next(Object& object, const EpochNextRequest& request);

// The counter, the newest view's epoch, the tail floor, the trim point and the log's id, as they
// are.
Result<HeadReply> epoch_read(Object& object, const Empty& request);

// Raises the tail floor to a tail that a client was given, so that no later epoch starts below
// it. kStaleEpoch (with the counter): the epoch is not the last one handed out. kBeyondStripe (with
// the highest tail that there can be): a new stripe has to start first. -ENOENT also when
// the log has another id: else the tail of a removed log would make holes in a new one of its name.
Result<Empty> tail_raise(Object& object, const TailRaiseRequest& request);

// Raises the trim point: every position below it counts as trimmed from now on, and its space may
// be freed. It never falls. Raising it costs no epoch. Archived stripes below it become loose, a
// bounded number per call; answers whether some are left. kHeldByCursor (with the lowest one): a
// cursor (cursors.h) lies below it, and the request does not say that it may pass cursors. -ENOENT
// also when the log has another id.
Result<MoreReply> trim_point_raise(Object& object, const TrimPointRequest& request);

// Takes a view if it was made from the newest one and may follow it (view.h); a view that is the
// newest already is taken again. The stripes that it leaves out are archived, or loose if nothing
// in them is needed; views of epochs long ago are removed. With a new stripe, the tail floor is no
// higher than its start. kInvalidEpoch: its epoch is not above
// the newest view's (with that) or was never handed out (with the counter). kStaleEpoch (with the
// newest view's epoch): it was made from another view. kRequestTooNew: the view is of a later
// version.
Result<Empty> view_propose(Object& object, const ViewProposeRequest& request);

// Views, ascending from an epoch on, or the newest.
Result<ViewReadReply> view_read(Object& object, const ViewReadRequest& request);

// Removes the head of a removed log. kInvalidEpoch (with the newest view's epoch): the newest view
// does not say so, or has another epoch.
Result<Empty> remove(Object& object, const EpochRequest& request);

// The key of the newest view, which is there whenever the head says that there is one; else empty.
std::string newest_key(const Head& head);

// For the other methods on a head object: 0, or kBeyondStripe with the highest tail that there can
// be until a new stripe starts. How far a tail lies above what is written, no object knows; so it
// goes by where the live stripe starts, which only clients that change the layout decide.
Failure check_tail(Object& object, const Head& head, uint64_t tail);

}  // namespace zlog::head
