#pragma once

#include <string>
#include <string_view>

#include "cls_zlog/base/object.h"

// Deliveries to a log, kept by its head object: which positions were granted for what, written down
// before anything is written there. A delivery is a part of a batch of a source; whoever has to do
// it again after a failure finds here where it may have got to, and keeps everybody out who was at
// it before. So its entries are appended exactly once (docs/design.md, "Deliveries").
//
// The life of a part: begun, by one attempt after the other, each of which shuts the one before out
// → granted positions, any number of times → removed, once its batch is done.
//
// What the methods take and answer is in delivery_messages.h and docs/formats/wire.md. All answer
// -EINVAL for a malformed request, -ENOENT when the log does not exist or has another id, -EIO when
// stored bytes are damaged.
namespace zlog::deliveries {

// Begins an attempt at a part: from here on those before it are granted nothing. Answers its
// number, how many grants they had, and the source's incarnation. The writer's ids of a delivery's
// appends are made of that and their numbers of the attempt's, so that none is ever used twice.
// kInvalidated (with the first batch that is not done): this one is. -EMFILE: the log has
// sources_max of them. -EMLINK: the source has parts_max. -ERANGE: the part has had attempts_max.
int begin(Object& object, std::string_view in, std::string* out);

// Writes down that positions are granted to an attempt, and raises the tail floor above them, so
// that no later epoch hands them out again. Answers the first one: the one that was asked for, or,
// where nobody hands positions out, the first one from there on that no tail has covered.
// kStaleEpoch (with the counter): a higher epoch has been asked for, and so others may be handed
// these positions; that is looked at first. kReadOnly (with its number): a later attempt has begun.
// kNotWritten: there is no such part, or it is of another incarnation; its batch is done. -E2BIG:
// grants_max.
int grant(Object& object, std::string_view in, std::string* out);

// The newest attempt at a part, and all grants. kNotWritten: there is no such part.
int read(Object& object, std::string_view in, std::string* out);

// Records that all batches of a source below one are done, and removes their parts, a bounded
// number per call; answers whether some are left. The number never falls. batch_all forgets the
// source itself in the end; kOk too when it is not there. The request names the incarnation that
// its sender saw, 0 for none or a damaged one: that is forgotten with batch_all.
// kReadOnly (with its incarnation): the source is another one by now, or one that was not named.
// kNotWritten (with the next incarnation): there is no such source; named by that it is made.
// -EMFILE: the log has sources_max of them, and so this one is not made. -ERANGE: the incarnations
// are used up.
int done(Object& object, std::string_view in, std::string* out);

// Sources in the order of their names, a page at a time.
int list(Object& object, std::string_view in, std::string* out);

}  // namespace zlog::deliveries
