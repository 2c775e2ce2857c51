#pragma once

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/wire/producer_messages.h"

// The methods for exactly-once appends (docs/design/append-once.md). Before an attempt writes
// anything, the head records which positions are granted to its part of a producer's sequence
// number. After a failure, a new attempt stops the earlier ones and learns from the head what they
// may have written. Each attempt first begins the part and is then granted positions. The part is
// removed once its sequence number is complete.
namespace zlog::producers {

using head::Head;

// Begins an attempt; from then on, earlier attempts are granted nothing. Returns the attempt's
// number, the number of earlier grants, and the producer's incarnation. The client makes append ids
// from the incarnation and the attempt's number, so that no id is used twice. Returns kSequenceDone
// (with the first incomplete number) if the sequence number is complete. Returns kLimitReached if
// the log has reached producers_max, the producer parts_max, or the part attempts_max.
Result<DeliveryBeginReply> begin(Object& object, Head& head, const DeliveryBeginRequest& request);

// Records positions as granted to an attempt, and raises the tail floor above them, so that no
// later epoch grants them. Returns the first position: the requested one or, if `reserve` is set,
// the first one at or above the tail floor. Returns kStaleEpoch (with the counter; checked first)
// if a higher epoch may have granted these positions to another client. Returns kSuperseded (with
// its number) if a later attempt has begun. Returns kNotFound if this incarnation of the producer
// has no such part, because its sequence number is complete. Returns kLimitReached if the part has
// grants_max grants. Returns kBeyondStripe as tail_raise does.
Result<DeliveryGrantReply> grant(Object& object, Head& head, const DeliveryGrantRequest& request);

// Returns a part's newest attempt and all of its grants, or kNotFound if there is no such part.
Result<DeliveryReadReply> read(Object& object, Head& head, const DeliveryRequest& request);

// Records that all sequence numbers of a producer below `sequence`, which never falls, are
// complete. Removes a limited number of their parts, and returns whether some are left. If
// `sequence` is sequence_all, the producer is forgotten once all of its parts are removed; this
// also succeeds if it does not exist. The request contains the incarnation that the client saw, or
// 0 if it saw none or a damaged producer, which sequence_all also forgets. Returns kSuperseded
// (with its incarnation) if the producer was created again. Returns kNotFound (with the next
// incarnation) if the producer does not exist; a request with that incarnation creates it. Returns
// kLimitReached as begin does.
Result<MoreReply> done(Object& object, Head& head, const DeliveryDoneRequest& request);

// Returns a page of producers in the order of their names.
Result<DeliveryListReply> list(Object& object, Head& head, const NamesRequest& request);

}  // namespace zlog::producers
