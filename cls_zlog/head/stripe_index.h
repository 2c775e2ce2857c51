#pragma once

#include <cstdint>

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/head_messages.h"

// What a log's head object knows of stripes beside its views (docs/formats/stripe-index.md):
//
//   archived   a closed stripe that the views have left behind, so that they stay small; together
//              with the newest view's, the archived stripes hold every position that is not trimmed
//   loose      a stripe whose objects may exist though no position is looked for in them: it was
//              announced for a view that has not come, or everything in it is trimmed
//
// A stripe's life: announced, with an epoch (loose) -> in a view -> archived -> loose -> forgotten.
// A client that dies on the way leaves it where it is, and the next one can see what to remove.
//
// The methods answer -ENOENT when the log does not exist or has another id, -EIO when stored bytes
// are damaged, and kStoredTooNew when they are of a later version.
namespace zlog::stripe_index {

// Archived stripes, ascending from the one that holds a position, or the next one above.
Result<StripesReadReply> read(Object& object, const StripesReadRequest& request);

// Loose stripes, ascending from an id on, and the newest view's epoch.
Result<StripesLooseReply> loose(Object& object, const StripesLooseRequest& request);

// Forgets a loose stripe, none of whose objects exists any more; answers kOk too when it is not
// loose. kInvalidEpoch (with the newest view's epoch): the view that it was announced for may still
// come.
Result<Empty> forget(Object& object, const StripeForgetRequest& request);

// For the other methods on a head object, which decide by the answer before they change anything.

// Notes that objects for a stripe may be made in this epoch.
Failure announce(Object& object, uint64_t epoch, uint32_t width);

// Notes that the view of this epoch has come: with the stripe `made` for it, or with none (nullptr;
// no objects were made then). -EINVAL: that stripe was not announced, or with another width.
Failure end_announcement(Object& object, uint64_t epoch, const Stripe* made);

// Notes that the views have left a stripe behind: loose if all of it lies below the trim point or
// it holds nothing, else archived.
Failure leave(Object& object, const Stripe& stripe, uint64_t trim_point);

// Makes archived stripes below the trim point loose, a bounded number; `more`: some are left.
Failure trim_to(Object& object, uint64_t trim_point, bool* more);

}  // namespace zlog::stripe_index
