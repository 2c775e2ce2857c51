#pragma once

#include <cstdint>

#include "cls_zlog/head/head_state.h"

// The stripes that a log's head object keeps outside its views (docs/formats/stripe-index.md):
//
//   archived   an ended stripe that the views leave out to stay small. The archived stripes and
//              the newest view together have every position that is not trimmed
//   pending    a stripe whose objects may exist although none of its positions is needed: it was
//              announced for a view that is not accepted yet, or all of it is trimmed
//
// A stripe is pending when it is announced with an epoch. Later it is in a view, archived, pending
// again, and forgotten. If a client dies in between, the next client finds the objects to remove.
namespace zlog::stripe_index {

using head::Head;

// Returns archived stripes in ascending order, beginning with the stripe that has the position or,
// if there is none, the next one above it.
Result<StripesReadReply> read(Object& object, Head& head, const StripesReadRequest& request);

// Returns pending stripes in the order of their ids, and the newest view's epoch.
Result<StripesLooseReply> pending(Object& object, Head& head, const StripesLooseRequest& request);

// Forgets a pending stripe, whose objects must no longer exist. Also succeeds if the stripe is not
// pending. Returns kInvalidEpoch (with the newest view's epoch) if the view for which the stripe
// was announced may still be accepted.
Result<Empty> forget(Object& object, Head& head, const StripeForgetRequest& request);

// The functions below are for other methods on a head object, which must call them before they
// change anything.

// Records that the objects of a stripe may be created in this epoch.
Failure announce(Object& object, uint64_t epoch, uint32_t width);

// Records that the view of this epoch was accepted. `made` is the view's new stripe, or nullptr.
// Returns -EINVAL if the stripe was not announced, or was announced with another width.
Failure end_announcement(Object& object, uint64_t epoch, const Stripe* made);

// Records a stripe that the views leave out: as pending if it is empty or completely below the trim
// point, and otherwise as archived.
Failure leave(Object& object, const Stripe& stripe, uint64_t trim_point);

// Marks a limited number of the archived stripes below the trim point as pending. Sets `more` if
// some are left.
Failure trim_to(Object& object, uint64_t trim_point, bool* more);

}  // namespace zlog::stripe_index
