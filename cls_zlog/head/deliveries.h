#pragma once

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/delivery_messages.h"

// Deliveries to a log, kept by its head object: which positions were granted for what, written down
// before anything is written there. A delivery is a part of a batch of a source; an attempt after
// a failure finds here where earlier ones may have got to, and shuts them out. So its entries are
// appended exactly once (docs/design.md, "Deliveries").
//
// The life of a part: begun, by one attempt after the other, each of which shuts the one before out
// → granted positions, any number of times → removed, once its batch is done.
//
// All answer -ENOENT when the log does not exist or has another id, -EIO when stored bytes are
// damaged, and kStoredTooNew when they are of a later version.
namespace zlog::deliveries {

// Begins an attempt at a part: from here on those before it are granted nothing. Answers its
// number, how many grants they had, and the source's incarnation. The writer's ids of a delivery's
// appends are made of that and their numbers of the attempt's, so that none is ever used twice.
// kBatchDone (with the first batch that is not): this one is. kLimitReached: the log has
// sources_max of them, the source has parts_max, or the part has had attempts_max.
Result<DeliveryBeginReply> begin(Object& object, const DeliveryBeginRequest& request);

// Writes down that positions are granted to an attempt, and raises the tail floor above them, so
// that no later epoch hands them out again. Answers the first one: the one that was asked for, or,
// where no sequencer hands positions out, the first one from there on that no tail has covered.
// kStaleEpoch (with the counter): a higher epoch has been asked for, and so others may be handed
// these positions; that is looked at first. kSuperseded (with its number): a later attempt has
// begun. kNotFound: there is no such part, or it is of another incarnation; its batch is done.
// kLimitReached: grants_max. kBeyondStripe: as of tail_raise.
Result<DeliveryGrantReply> grant(Object& object, const DeliveryGrantRequest& request);

// The newest attempt at a part, and all grants. kNotFound: there is no such part.
Result<DeliveryReadReply> read(Object& object, const DeliveryRequest& request);

// Records that all batches of a source below one are done, and removes their parts, a bounded
// number per call; answers whether some are left. The number never falls. batch_all forgets the
// source itself in the end; kOk too when it is not there. The request names the incarnation that
// its sender saw, 0 for none or a damaged one: that is forgotten with batch_all.
// kSuperseded (with its incarnation): the source is another one by now, or one that was not named.
// kNotFound (with the next incarnation): there is no such source; named by that it is made.
// kLimitReached: the log has sources_max of them, and so this one is not made.
Result<MoreReply> done(Object& object, const DeliveryDoneRequest& request);

// Sources in the order of their names, a page at a time.
Result<DeliveryListReply> list(Object& object, const NamesRequest& request);

}  // namespace zlog::deliveries
