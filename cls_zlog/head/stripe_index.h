#pragma once

#include <cstdint>

#include "cls_zlog/head/head_state.h"

// The stripes that a log's head object keeps outside its views (docs/formats/stripe-index.md):
//
//   archived   an ended stripe that the views leave out, so that they stay small. The archived
//              stripes and the newest view's hold every position that is not trimmed
//   pending    a stripe whose objects may exist although no position is needed in them: it was
//              announced for a view that was not accepted yet, or all of it is trimmed
//
// A stripe is announced with an epoch (pending), then in a view, archived, pending, and forgotten. If
// a client dies in between, the next client finds the objects to remove.
namespace zlog::stripe_index {

using head::Head;

// Archived stripes, ascending from the stripe that holds a position, or the next stripe above.
Result<StripesReadReply> read(Object& object, Head& head, const StripesReadRequest& request);

// Pending stripes by id, and the newest view's epoch.
Result<StripesLooseReply> pending(Object& object, Head& head, const StripesLooseRequest& request);

// Forgets a stripe; its objects must not exist any more. kOk also if it is not pending. kInvalidEpoch
// (with the newest view's epoch): the view for which it was announced may still be accepted.
Result<Empty> forget(Object& object, Head& head, const StripeForgetRequest& request);

// For other methods on a head object, which must call these before they change anything.

// Notes that a stripe's objects may be made in this epoch.
Failure announce(Object& object, uint64_t epoch, uint32_t width);

// Notes that the view of this epoch was accepted, with its new stripe `made` or without one
// (nullptr). -EINVAL: the stripe was not announced, or with another width.
Failure end_announcement(Object& object, uint64_t epoch, const Stripe* made);

// Notes that the views leave out a stripe: as pending if it is empty or wholly below the trim point,
// else as archived.
Failure leave(Object& object, const Stripe& stripe, uint64_t trim_point);

// Makes a bounded number of archived stripes below the trim point pending; `more`: some are left.
Failure trim_to(Object& object, uint64_t trim_point, bool* more);

}  // namespace zlog::stripe_index
