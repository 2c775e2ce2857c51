#pragma once

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/wire/delivery_messages.h"

// Deliveries to a log: the head records which positions were granted to which part of which batch
// of a source before anything is written there. After a failure a new attempt finds here what
// earlier attempts may have written, and shuts them out, so entries are appended exactly once
// (docs/design.md, "Deliveries"). A part is begun, by one attempt after the other, granted
// positions, and removed once its batch is done.
namespace zlog::deliveries {

using head::Head;

// Begins an attempt: earlier ones are granted nothing from then on. Answers its number, the number
// of their grants, and the source's incarnation. The ids of a delivery's appends are made of the
// incarnation and the attempt's number, so none is used twice. kBatchDone (with the first batch
// that is not done). kLimitReached: the log has sources_max sources, the source parts_max parts, or
// the part attempts_max attempts.
Result<DeliveryBeginReply> begin(Object& object, Head& head, const DeliveryBeginRequest& request);

// Records positions as granted to an attempt, and raises the tail floor above them, so that no
// later epoch hands them out. Answers the first one: the requested one, or, with `reserve`, the
// first one from there on that is above every recorded tail. kStaleEpoch (with the counter; checked
// first): another client may be granted these positions in a higher epoch. kSuperseded (with its
// number): a later attempt has begun. kNotFound: there is no such part of this incarnation; its
// batch is done. kLimitReached: grants_max. kBeyondStripe: as in tail_raise.
Result<DeliveryGrantReply> grant(Object& object, Head& head, const DeliveryGrantRequest& request);

// The newest attempt at a part, and all grants. kNotFound: there is no such part.
Result<DeliveryReadReply> read(Object& object, Head& head, const DeliveryRequest& request);

// Records that all batches of a source below one are done, and removes a bounded number of their
// parts; answers whether some are left. The number never falls. batch_all also forgets the source,
// in the end; kOk also if it does not exist. The request has the incarnation that the client saw, 0
// for none or a damaged source: batch_all forgets a damaged one. kSuperseded (with its
// incarnation): the source is another one now. kNotFound (with the next incarnation): there is no
// such source; a request with that incarnation makes it. kLimitReached: as in begin.
Result<MoreReply> done(Object& object, Head& head, const DeliveryDoneRequest& request);

// A page of sources, by name.
Result<DeliveryListReply> list(Object& object, Head& head, const NamesRequest& request);

}  // namespace zlog::deliveries
