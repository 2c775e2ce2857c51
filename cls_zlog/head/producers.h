#pragma once

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/wire/producer_messages.h"

// Exactly-once appends: the head records which positions were granted to a part of a producer's
// sequence number before anything is written there. After a failure a new attempt finds here what
// earlier attempts may have written, and shuts them out (docs/design/append-once.md). A part is begun, by one
// attempt after the other, granted positions, and removed once its sequence number is complete.
namespace zlog::producers {

using head::Head;

// Begins an attempt: earlier attempts are granted nothing from then on. Answers its number, the number
// of earlier grants, and the producer's incarnation. The append ids are made of the incarnation and
// the attempt's number, so none is used twice. kSequenceDone (with the first number that is not
// complete). kLimitReached: producers_max, parts_max or attempts_max.
Result<DeliveryBeginReply> begin(Object& object, Head& head, const DeliveryBeginRequest& request);

// Records positions as granted to an attempt, and raises the tail floor above them, so that no
// later epoch grants them. Answers the first position: the requested one, or, with `reserve`, the
// next one above every recorded tail. kStaleEpoch (with the counter; checked first): another client
// may be granted these positions in a higher epoch. kSuperseded (with its number): a later attempt
// has begun. kNotFound: this incarnation has no such part; its sequence number is complete.
// kLimitReached: grants_max. kBeyondStripe: as in tail_raise.
Result<DeliveryGrantReply> grant(Object& object, Head& head, const DeliveryGrantRequest& request);

// The newest attempt at a part, and all grants. kNotFound: the part does not exist.
Result<DeliveryReadReply> read(Object& object, Head& head, const DeliveryRequest& request);

// Records that all sequence numbers of a producer below one are complete, and removes a bounded number
// of their parts; answers whether some are left. The number never falls. sequence_all also forgets the
// producer, in the end; kOk also if it does not exist. The request has the incarnation that the client
// saw, 0 for none or a damaged producer, which sequence_all forgets. kSuperseded (with its incarnation):
// the producer was made again. kNotFound (with the next incarnation): the producer does not exist; a
// request with that incarnation makes it. kLimitReached: as in begin.
Result<MoreReply> done(Object& object, Head& head, const DeliveryDoneRequest& request);

// A page of producers, by name.
Result<DeliveryListReply> list(Object& object, Head& head, const NamesRequest& request);

}  // namespace zlog::producers
