#pragma once

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/wire/producer_messages.h"

// The methods for exactly-once appends. The head records which positions are granted to a part of a
// producer's sequence number before anything is written there. After a failure, a new attempt
// learns from the head what earlier attempts may have written, and stops them
// (docs/design/append-once.md). Each attempt first begins the part and is then granted positions.
// The part is removed once its sequence number is complete.
namespace zlog::producers {

using head::Head;

// Begins an attempt; earlier attempts are granted nothing from then on. Returns the attempt's
// number, the number of earlier grants, and the producer's incarnation. Append ids are made from
// the incarnation and the attempt's number, so that no id is used twice. kSequenceDone (with the
// first number that is not complete): the sequence number is complete. kLimitReached: the limit is
// producers_max, parts_max or attempts_max.
Result<DeliveryBeginReply> begin(Object& object, Head& head, const DeliveryBeginRequest& request);

// Records positions as granted to an attempt, and raises the tail floor above them, so that no
// later epoch grants them. Returns the first position: the requested one, or, if `reserve` is set,
// the first one above every recorded tail. kStaleEpoch (with the counter; checked first): another
// client may be granted these positions in a higher epoch. kSuperseded (with its number): a later
// attempt has begun. kNotFound: the producer of this incarnation has no such part, since its
// sequence number is complete. kLimitReached: the part has grants_max grants. kBeyondStripe: as in
// tail_raise.
Result<DeliveryGrantReply> grant(Object& object, Head& head, const DeliveryGrantRequest& request);

// Returns the newest attempt at a part and all of the part's grants. kNotFound: the part does not
// exist.
Result<DeliveryReadReply> read(Object& object, Head& head, const DeliveryRequest& request);

// Records that all sequence numbers of a producer below `sequence` are complete, removes a bounded
// number of their parts, and returns whether some are left. This number never falls. If `sequence`
// is sequence_all, the producer is forgotten once all of its parts are removed; this also succeeds
// if it does not exist. The request has the incarnation of the producer as the client saw it; 0 if
// it saw none, or a damaged one, which sequence_all also forgets. kSuperseded (with its
// incarnation): the producer was created again. kNotFound (with the next incarnation): the producer
// does not exist; a request with that incarnation creates it. kLimitReached: as in begin.
Result<MoreReply> done(Object& object, Head& head, const DeliveryDoneRequest& request);

// Returns a page of producers in the order of their names.
Result<DeliveryListReply> list(Object& object, Head& head, const NamesRequest& request);

}  // namespace zlog::producers
