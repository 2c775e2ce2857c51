#pragma once

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/wire/producer_messages.h"

// The methods for exactly-once appends (docs/design/append-once.md). A client calls begin() when it
// starts an attempt to append a part, and grant() before it writes, so that the head records which
// positions the attempt may use. If the client fails, a new attempt stops the earlier ones and
// learns these positions from the head.
namespace zlog::producers {

using head::Head;

// Begins a new attempt to append a part; earlier attempts get no more grants. Returns the attempt's
// number, the number of earlier grants, and the producer's incarnation, from which the client
// derives append ids that were never used before. Returns kSequenceDone (with the first incomplete
// number) if the sequence number is complete, and kLimitReached if the log has too many producers,
// the producer too many parts, or the part too many attempts.
Result<DeliveryBeginReply> begin(Object& object, Head& head, const DeliveryBeginRequest& request);

// Records that an attempt may write certain positions, and raises the tail floor above them, so
// that no later epoch grants them again. If `reserve` is set and the tail floor is above the first
// requested position, positions from the tail floor on are granted instead. Returns the first
// position, or
//   kStaleEpoch    (with the counter) a later epoch may have granted the positions to others
//   kSuperseded    (with its number) a later attempt has begun
//   kNotFound      the part was removed, because its sequence number is complete
//   kLimitReached  the part already has grants_max grants
//   kBeyondStripe  as tail_raise does
Result<DeliveryGrantReply> grant(Object& object, Head& head, const DeliveryGrantRequest& request);

// Returns a part's newest attempt and all of its grants, or kNotFound if there is no such part.
Result<DeliveryReadReply> read(Object& object, Head& head, const DeliveryRequest& request);

// Records that a producer's sequence numbers below `sequence` are complete, and removes their
// parts. If `sequence` is sequence_all, also removes the producer, which may be missing already.
// One call removes a limited number of parts, and returns whether more are left.
//
// A copy of records names the epoch in which the log is a mirror; kStaleEpoch (with the counter) means
// that this is not the newest epoch.
//
// The request contains the producer's incarnation, or 0 if the client does not know it or removes a
// damaged producer. Returns
//   kSuperseded    (with the current incarnation) the request has another incarnation
//   kNotFound      (with the next incarnation) the producer does not exist; to create it, repeat
//                  the request with this incarnation
//   kLimitReached  as begin() does
Result<MoreReply> done(Object& object, Head& head, const DeliveryDoneRequest& request);

// Returns a page of producers in the order of their names.
Result<DeliveryListReply> list(Object& object, Head& head, const NamesRequest& request);

// Returns a page of a producer's parts in the order of their numbers, from the requested part on.
Result<ProducerPartsReply> parts(Object& object, Head& head, const DeliveryRequest& request);

// Adds a producer and some of its grants to a mirror (docs/design/mirrors.md). The result is the same
// if copies are repeated or arrive in another order. Parts that are complete in the mirror stay so. A
// client copies producers in the order of their incarnations, so a missing producer whose incarnation
// is not above all others was forgotten. Returns
//   kStaleEpoch    (with the counter) the epoch is not the newest, so the log may be no mirror
//   kSuperseded    (with the current incarnation, or 0) the producer was forgotten, or the mirror
//                  has another incarnation
//   kLimitReached  as begin() and grant() do
Result<Empty> copy(Object& object, Head& head, const ProducerCopyRequest& request);

}  // namespace zlog::producers
