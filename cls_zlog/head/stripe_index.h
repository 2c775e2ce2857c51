#pragma once

#include <cstdint>

#include "cls_zlog/head/head_state.h"

// The stripes that a log's head object stores outside its views (docs/formats/stripe-index.md):
//
//   archived   an ended stripe with untrimmed positions, which was moved out of the newest view to
//              keep the view small
//   pending    a stripe whose objects may exist but are not needed, because no accepted view has it
//              yet, or because it is empty or completely trimmed
//
// A stripe is recorded as pending before its objects are created, and again before they are
// removed. If a client dies in between, the next client knows which objects to remove.
namespace zlog::stripe_index {

using head::Head;

// Returns archived stripes in ascending order. The first one contains the requested position or, if
// no archived stripe does, is the next one above it.
Result<StripesReadReply> read(Object& object, Head& head, const StripesReadRequest& request);

// Returns pending stripes in the order of their ids, and the newest view's epoch.
Result<StripesLooseReply> pending(Object& object, Head& head, const StripesLooseRequest& request);

// Forgets a pending stripe whose objects the client has removed. Also succeeds if it is not
// pending. Returns kInvalidEpoch (with the newest view's epoch) if a view with this stripe can
// still be accepted.
Result<Empty> forget(Object& object, Head& head, const StripeForgetRequest& request);

// The functions below are for other methods on a head object. These must call them before they
// change anything.

// Makes a stripe pending. Its id is the epoch in which its objects may be created.
Failure announce(Object& object, uint64_t id, uint32_t width);

// Removes this epoch's announcement when the epoch's view is accepted. `made` is the stripe that
// the view adds, or nullptr. Returns -EINVAL if `made` was not announced with this width.
Failure end_announcement(Object& object, uint64_t epoch, const Stripe* made);

// Loads the archived stripe that ends at `end`. Returns -ENOENT if there is none.
Failure find(Object& object, uint64_t end, Stripe* out);

// Records a stripe that the views no longer contain. It becomes pending if it is empty or
// completely below the trim point, and is archived otherwise.
Failure leave(Object& object, const Stripe& stripe, uint64_t trim_point);

// Makes archived stripes below the trim point pending. One call changes a limited number of
// stripes, and sets `more` if others are left.
Failure trim_to(Object& object, uint64_t trim_point, bool* more);

}  // namespace zlog::stripe_index
