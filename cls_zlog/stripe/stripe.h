#pragma once

#include <cstdint>
#include <vector>

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/base/span.h"
#include "cls_zlog/wire/read_reply.h"
#include "cls_zlog/wire/select_messages.h"
#include "cls_zlog/wire/stripe_messages.h"

// The methods on a stripe object: the object that holds its share of a stripe's positions. All
// answer
//   -EINVAL        the request is about positions that are not this object's
//   -ENOENT        the object was never sealed, or is removed
//   -EIO           stored bytes that it can't do without are damaged
//   kStoredTooNew  stored bytes that it can't do without are of a later version
//   kStaleEpoch    (with the object's epoch) the request's epoch is lower
// A method decides its answer before it changes anything.
namespace zlog::stripe {

// Installs a strictly greater epoch, up to epochs_ahead_max above the last one: from then on every
// lower one is refused. Answers the highest position that is taken, how full the object is, and
// whether it was made. The first one that says where the stripe begins bounds what the object
// takes: write, fill and trim of a position object_positions_max or more of its positions further
// answer kBeyondStripe (with the first such position). Makes a missing object only when asked to,
// as for a new stripe: one that was lost is noticed (-ENOENT) and never silently replaced by an
// empty one. kInvalidEpoch (with the object's epoch): not greater, or too far above. -EINVAL: the
// object was made for other positions. -EEXIST: an object that is none of ours.
Result<SealReply> seal(Object& object, const SealRequest& request);

// Writes entries, all or none. Identity goes before epoch: when every position holds the entry
// already (same writer, number and data), the answer is kOk whatever the epoch. So is kUnreadable or
// kLost (with the first such position): a later version stored what is there, or it is damaged or
// gone; it may be this entry. kStaleEpoch: at least one entry is not there and never will be by this
// request. kReadOnly (with the first position taken): a position was written by another append,
// filled or trimmed. Answers how full the object is.
Result<Fullness> write(Object& object, const WriteRequest& request);

// What is known of each position, and its data.
Result<ReadReplyBuilder> read(Object& object, const ReadRequest& request);

// The entries with some tags in a range, and what else may hide one; of a bounded part of it, as far as
// the reply says. It goes by the index of tags, and looks through the records that this says nothing of.
Result<SelectReplyBuilder> select(Object& object, const SelectRequest& request);

// Compares the index of tags with the records.
Result<TagsCheckReply> tags_check(Object& object, const TagsRequest& request);

// Makes the index of tags anew, from the records.
Result<TagsRebuildReply> tags_rebuild(Object& object, const TagsRequest& request);

// The same as read without the data: its checksums are compared here, and what is sent are states and
// identities, of positions alike together.
Result<VerifyReply> verify(Object& object, const VerifyRequest& request);

// How many entries and bytes of data a range holds, when they were appended, and where its first
// unwritten position is. Of a bounded number of records; answers how far it came.
Result<CountReply> count(Object& object, const CountRequest& request);

// Fills positions with junk, all or none; one that is filled or trimmed already is left as it is.
// kReadOnly (with the first such position): one is written. kUnreadable: a later version stored what
// is there. kLost: its record is damaged or gone.
Result<Empty> fill(Object& object, const FillRequest& request);

// Trims positions and frees their data. kUnreadable (with the first such position): a later version
// stored what is there. -E2BIG: too many records are touched.
Result<Empty> trim(Object& object, const TrimRequest& request);

// Which tags the entries of a range have; of a bounded part of it, as far as the reply says.
Result<TagsListReplyBuilder> tags_list(Object& object, const TagsRequest& request);

// Trims those of some positions that are entries, frees their data, and stores what is left in the
// records that lie wholly in a range together, so that these take no more than that. There the identity
// of what is trimmed is forgotten. Of a bounded part of the range; answers how far it came. What is no
// entry, damaged or of a later version is left as it is.
Result<CompactReply> compact(Object& object, const CompactRequest& request);

// Trims every position below one, and frees records that are wholly below it, a bounded number per
// call; answers whether some are left. Takes effect for readers and writers with the first call,
// but for what a later version stored and what is above that: kUnreadable (with its first position)
// when nothing is left below it.
Result<MoreReply> trim_to(Object& object, const TrimToRequest& request);

// The highest position that is taken, and the first one that may not be.
Result<HighestReply> max_position(Object& object, const HighestRequest& request);

Result<StatReply> stat(Object& object, const EpochRequest& request);

// Removes the object. Nothing but a seal that makes objects brings it back.
Result<Empty> remove(Object& object, const EpochRequest& request);

// The positions (ascending) as spans, as long as possible.
std::vector<Span> spans_of(const std::vector<uint64_t>& positions, const Spacing& spacing);

}  // namespace zlog::stripe
