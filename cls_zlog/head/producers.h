#pragma once

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/wire/producer_messages.h"

// Exactly-once appends: the head records which positions were granted to which part of which
// sequence number of a producer, before anything is written there. After a failure a new attempt finds here what
// earlier attempts may have written, and shuts them out, so entries are appended exactly once
// (docs/design/append-once.md). A part is begun, by one attempt after the other, granted
// positions, and removed once its sequence is done.
namespace zlog::producers {

using head::Head;

// Begins an attempt: earlier ones are granted nothing from then on. Answers its number, the number
// of their grants, and the producer's incarnation. Append ids are made of the
// incarnation and the attempt's number, so none is used twice. kSequenceDone (with the first
// sequence number that is not). kLimitReached: the log has producers_max producers, the producer parts_max parts, or
// the part attempts_max attempts.
Result<DeliveryBeginReply> begin(Object& object, Head& head, const DeliveryBeginRequest& request);

// Records positions as granted to an attempt, and raises the tail floor above them, so that no
// later epoch hands them out. Answers the first one: the requested one, or, with `reserve`, the
// first one from there on that is above every recorded tail. kStaleEpoch (with the counter; checked
// first): another client may be granted these positions in a higher epoch. kSuperseded (with its
// number): a later attempt has begun. kNotFound: there is no such part of this incarnation; its
// sequence is done. kLimitReached: grants_max. kBeyondStripe: as in tail_raise.
Result<DeliveryGrantReply> grant(Object& object, Head& head, const DeliveryGrantRequest& request);

// The newest attempt at a part, and all grants. kNotFound: there is no such part.
Result<DeliveryReadReply> read(Object& object, Head& head, const DeliveryRequest& request);

// Records that all sequences of a producer below one are done, and removes a bounded number of their
// parts; answers whether some are left. The number never falls. sequence_all also forgets the producer,
// in the end; kOk also if it does not exist. The request has the incarnation that the client saw, 0
// for none or a damaged producer: sequence_all forgets a damaged one. kSuperseded (with its
// incarnation): the producer is another one now. kNotFound (with the next incarnation): there is no
// such producer; a request with that incarnation makes it. kLimitReached: as in begin.
Result<MoreReply> done(Object& object, Head& head, const DeliveryDoneRequest& request);

// A page of producers, by name.
Result<DeliveryListReply> list(Object& object, Head& head, const NamesRequest& request);

}  // namespace zlog::producers
