#pragma once

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/wire/producer_messages.h"

// The methods for exactly-once appends (docs/design/append-once.md). A client calls begin() when it
// starts an attempt to append a part, and then grant() before it writes, which records in the head
// the positions that the attempt may use. If the client fails, a new attempt stops the earlier ones
// and learns from the head which positions they may have written. A part is removed once its
// sequence number is complete.
namespace zlog::producers {

using head::Head;

// Begins an attempt, after which earlier attempts at the part are granted nothing more. Returns the
// attempt's number, the number of earlier grants, and the producer's incarnation. The client
// derives its append ids from the incarnation and the attempt's number, so that no id is used
// twice. Returns kSequenceDone (with the first incomplete number) if the sequence number is
// complete. Returns kLimitReached if the log has too many producers, the producer too many parts,
// or the part too many attempts.
Result<DeliveryBeginReply> begin(Object& object, Head& head, const DeliveryBeginRequest& request);

// Records that an attempt may write certain positions, and raises the tail floor above them so that
// no later epoch grants them again. Returns the first of these positions: the requested one or, if
// `reserve` is set, the first one at or above the tail floor.
//
// Returns kStaleEpoch (with the counter; checked first) if a higher epoch may have granted these
// positions to another client. Returns kSuperseded (with its number) if a later attempt has begun,
// and kNotFound if the part no longer exists because its sequence number is complete. Returns
// kLimitReached if the part has grants_max grants, and kBeyondStripe as tail_raise does.
Result<DeliveryGrantReply> grant(Object& object, Head& head, const DeliveryGrantRequest& request);

// Returns a part's newest attempt and all of its grants, or kNotFound if there is no such part.
Result<DeliveryReadReply> read(Object& object, Head& head, const DeliveryRequest& request);

// Records that all sequence numbers of a producer below `sequence` are complete, and removes their
// parts. One call removes a limited number of parts and returns whether more are left. If
// `sequence` is sequence_all, the producer itself is forgotten once its parts are removed; this
// also succeeds if there is no such producer.
//
// A request contains the incarnation that the client last saw, or 0 if it saw none or found a
// damaged producer. Returns kSuperseded (with the current incarnation) if the producer was created
// again since then. Returns kNotFound (with the next incarnation) if the producer does not exist;
// the client creates it by repeating the request with that incarnation. Returns kLimitReached as
// begin does.
Result<MoreReply> done(Object& object, Head& head, const DeliveryDoneRequest& request);

// Returns a page of producers in the order of their names.
Result<DeliveryListReply> list(Object& object, Head& head, const NamesRequest& request);

}  // namespace zlog::producers
