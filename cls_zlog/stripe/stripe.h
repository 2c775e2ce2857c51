#pragma once

#include "cls_zlog/stripe/header.h"
#include "cls_zlog/wire/read_reply.h"
#include "cls_zlog/wire/select_messages.h"

// The methods on a stripe object, which holds its share of a stripe's positions. All answer
//   -EINVAL        the request is about positions of another object
//   -ENOENT        the object was never sealed, or is removed
//   -EIO           required stored bytes are damaged
//   kStoredTooNew  required stored bytes are of a later version
//   kStaleEpoch    (with the object's epoch) the request's epoch is lower
// A method decides its answer before it changes anything. A method that does a bounded part of its
// work says in its reply how far it got.
namespace zlog::stripe {

// Installs a higher epoch, at most epochs_ahead_max above the last one: from then on lower ones are
// refused. Answers the highest taken position, how full the object is, and whether it was made. The
// first seal with the stripe's start bounds the object: write, fill and trim answer kBeyondStripe
// (with the first such position) object_positions_max positions above it. Makes a missing object
// only with `create`, for a new stripe, so a lost object is never replaced by an empty one
// (-ENOENT). kInvalidEpoch (with the object's epoch): the epoch is not higher, or too high.
// -EINVAL: the object was made for other positions. -EEXIST: the object was not made by seal.
Result<SealReply> seal(Object& object, const SealRequest& request);

// Writes entries, all or none, and answers how full the object is. Checks, in this order:
//   - every position has the entry already (same writer, number, data and tags): kOk at any epoch.
//     kSameId (with the first such position): only the data has to be compared, which is compressed
//   - kUnreadable, kLost (with the first such position): its record is of a later version, damaged
//     or gone, and may have this entry
//   - kStaleEpoch: at least one entry is not stored
//   - kReadOnly (with the first such position): it has another entry, or is filled or trimmed
Result<Fullness> write(Object& object, const WriteRequest& request);

// The state of each position, and the data of entries.
Result<ReadReplyBuilder> read(Object& object, Header& header, const ReadRequest& request);

// The entries of a range with some tags, and the gaps that may hide one. Uses the index of tags,
// and reads all records where the index is missing. Does a bounded part.
Result<SelectReplyBuilder> select(Object& object, Header& header, const SelectRequest& request);

// Compares the index of tags with the records. Does a bounded part.
Result<TagsCheckReply> tags_check(Object& object, const Header& header,
                                  const RangeRequest& request);

// Rebuilds the index of tags from the records. Does a bounded part.
Result<EndReply> tags_rebuild(Object& object, const Header& header, const RangeRequest& request);

// As read, but compares checksums here, and answers states and ids without data, as rows.
Result<VerifyReply> verify(Object& object, Header& header, const VerifyRequest& request);

// Counts the entries of a range and their bytes; answers when they were appended, and the first
// unwritten position. Does a bounded part.
Result<CountReply> count(Object& object, const Header& header, const RangeRequest& request);

// Fills positions with junk, all or none, except filled and trimmed ones. kReadOnly (with the first
// such position): it is written. kUnreadable: its record is of a later version. kLost: its record
// is damaged or gone.
Result<Empty> fill(Object& object, Header& header, const FillRequest& request);

// Trims positions and frees their data. kUnreadable (with the first such position): its record is
// of a later version. -E2BIG: the positions are in too many records.
Result<Empty> trim(Object& object, Header& header, const TrimRequest& request);

// The tags of a range's entries. Does a bounded part.
Result<TagsListReplyBuilder> tags_list(Object& object, const Header& header,
                                       const RangeRequest& request);

// Trims the entries at some positions and frees their data. Stores the other entries of the records
// wholly in a range together, in less space, and forgets the ids of the trimmed ones. Leaves fills,
// and records that are damaged or of a later version. Does a bounded part.
Result<CompactReply> compact(Object& object, Header& header, const CompactRequest& request);

// Trims every position below one, and frees a bounded number of the records wholly below it;
// answers whether some are left. Readers and writers see all of it trimmed after the first call,
// but not from the first record of a later version on: kUnreadable (with its first position) once
// nothing is left below it.
Result<MoreReply> trim_to(Object& object, Header& header, const TrimToRequest& request);

// The highest taken position, and the first position that may be unwritten.
Result<HighestReply> max_position(Object& object, const Header& header,
                                  const HighestRequest& request);

Result<StatReply> stat(Object& object, const Header& header, const EpochRequest& request);

// Removes the object. Only a seal with `create` brings it back.
Result<Empty> remove(Object& object, Header& header, const EpochRequest& request);

}  // namespace zlog::stripe
