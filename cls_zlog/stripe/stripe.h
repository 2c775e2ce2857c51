#pragma once

#include "cls_zlog/stripe/header.h"
#include "cls_zlog/wire/read_reply.h"
#include "cls_zlog/wire/select_messages.h"

// The methods on a stripe object, which holds its share of a stripe's positions. All of them return
//   -EINVAL        the request is about positions of another object
//   -ENOENT        the object was never sealed, or is removed
//   -EIO           required stored bytes are damaged
//   kStoredTooNew  required stored bytes are of a later version
//   kStaleEpoch    (with the object's epoch) the request's epoch is lower than the object's
// A method decides what to return before it changes anything. A method that does only a bounded
// part of its work returns how far it got, and the client calls it again.
namespace zlog::stripe {

// Raises the object's epoch, by at most epochs_ahead_max; the object then refuses requests with
// lower epochs. Returns the highest position in use, how full the object is, and whether it was
// created. The first seal that has the stripe's start bounds the object: from object_positions_max
// positions above the start on, write, fill and trim return kBeyondStripe (with the first such
// position). A missing object is created only if `create` is set, for a new stripe; otherwise seal
// returns -ENOENT, so that an empty object never replaces a lost one. kInvalidEpoch (with the
// object's epoch): the epoch is not higher, or too high. -EINVAL: the object was created for other
// positions. -EEXIST: the object was not created by seal.
Result<SealReply> seal(Object& object, const SealRequest& request);

// Writes all of the entries or none, and returns how full the object is. Checks in this order:
//   - every position has the entry already (same writer, number, data and tags): kOk at any epoch.
//     kSameId (with the first such position): only the data has to be compared, which is compressed
//   - kUnreadable, kLost (with the first such position): its record is of a later version, damaged
//     or gone, and may have this entry
//   - kStaleEpoch: at least one entry is not stored
//   - kReadOnly (with the first such position): it has another entry, or is filled or trimmed
Result<Fullness> write(Object& object, const WriteRequest& request);

// Returns the state of each position, and the data of entries.
Result<ReadReplyBuilder> read(Object& object, Header& header, const ReadRequest& request);

// Returns the entries of a range that have some tags, and the gaps that may hide such an entry.
// Looks them up in the index of tags, and reads every record of positions that the index does not
// cover. Does a bounded part.
Result<SelectReplyBuilder> select(Object& object, Header& header, const SelectRequest& request);

// Compares the index of tags with the records. Does a bounded part.
Result<TagsCheckReply> tags_check(Object& object, const Header& header,
                                  const RangeRequest& request);

// Rebuilds the index of tags from the records. Does a bounded part.
Result<EndReply> tags_rebuild(Object& object, const Header& header, const RangeRequest& request);

// Like read, but compares the checksums in the OSD and returns rows of states and ids, without
// data.
Result<VerifyReply> verify(Object& object, Header& header, const VerifyRequest& request);

// Counts the entries of a range and their bytes, and finds when they were appended and which
// position is the first unwritten one. Does a bounded part.
Result<CountReply> count(Object& object, const Header& header, const RangeRequest& request);

// Fills positions, all or none, except filled and trimmed ones. kReadOnly (with the first
// such position): it is written. kUnreadable: its record is of a later version. kLost: its record
// is damaged or gone.
Result<Empty> fill(Object& object, Header& header, const FillRequest& request);

// Trims positions and frees their data. kUnreadable (with the first such position): the position's
// record is of a later version. -E2BIG: the positions are in too many records.
Result<Empty> trim(Object& object, Header& header, const TrimRequest& request);

// Returns the tags of the entries in a range. Does a bounded part.
Result<TagsListReplyBuilder> tags_list(Object& object, const Header& header,
                                       const RangeRequest& request);

// Trims the entries at some positions and frees their data. Then merges the remaining entries of
// all records wholly inside a range into fewer records, without the ids of the trimmed entries.
// Leaves fills as they are, and records that are damaged or of a later version. Does a bounded
// part.
Result<CompactReply> compact(Object& object, Header& header, const CompactRequest& request);

// Trims every position below the requested one, and frees a bounded number of the records wholly
// below it; returns whether some are left. After the first call readers and writers see all of
// these positions as trimmed, unless a record of a later version is among them: only the positions
// below that record are trimmed, and once their records are freed the method returns kUnreadable
// (with the record's first position).
Result<MoreReply> trim_to(Object& object, Header& header, const TrimToRequest& request);

// Returns the highest position in use, and the first position that may be unwritten.
Result<HighestReply> max_position(Object& object, const Header& header,
                                  const HighestRequest& request);

Result<StatReply> stat(Object& object, const Header& header, const EpochRequest& request);

// Removes the object. Only a seal with `create` creates it again.
Result<Empty> remove(Object& object, Header& header, const EpochRequest& request);

}  // namespace zlog::stripe
