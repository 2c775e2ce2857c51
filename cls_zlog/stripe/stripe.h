#pragma once

#include "cls_zlog/stripe/header.h"
#include "cls_zlog/wire/append_messages.h"
#include "cls_zlog/wire/read_reply.h"
#include "cls_zlog/wire/select_messages.h"

// The methods on a stripe object, which holds its share of a stripe's positions. All of them can
// return
//   -EINVAL        the request contains positions of another object
//   -ENOENT        the object was never sealed, or was removed
//   -EIO           stored bytes that the method needs are damaged
//   kStoredTooNew  a later version of zlog wrote bytes that the method needs
//   kStaleEpoch    (with the object's epoch) the request's epoch is lower than the object's
// A method changes nothing if it returns an error. Many methods process only a part of a long range
// in one call. Their reply says how far they got, and the client calls them again for the rest.
namespace zlog::stripe {

// Raises the object's epoch; from then on, the object refuses requests with lower epochs. Returns
// the highest position in use, how full the object is, and whether this call created it. A missing
// object is created only if `create` is set, which clients do only for a new stripe, so that an
// empty object never replaces a lost one. The first seal that contains the stripe's start also
// limits the object to object_positions_max positions; above them, write, fill and trim return
// kBeyondStripe (with the first position that is too high).
//
// Returns kInvalidEpoch (with the object's epoch) if the new epoch is not higher, or is higher by
// more than epochs_ahead_max. Returns -EINVAL if the object was created for other positions, and
// -EEXIST if it was not created by seal.
Result<SealReply> seal(Object& object, const SealRequest& request);

// Writes either all of the entries or none, and returns how full the object is. The first case that
// applies decides:
// - kSameId (with the position): an entry may be stored already; only clients can decompress it.
// - kOk, in any epoch: all entries are stored already (same writer, numbers, data and tags).
// - kUnreadable, kLost (with the position): an entry's record is too new, damaged or lost.
// - kStaleEpoch: the request's epoch is lower than the object's.
// - kReadOnly (with the position): a position has another entry, or is filled or trimmed.
Result<Fullness> write(Object& object, const WriteRequest& request);

// Appends parts, each of which is a list of entries, at the next positions of an object of stride 1.
// A part is stored completely or not at all, and only if its condition holds at its position.
//
// A call either stores the first `stored` parts of the request, or reports an outcome of each part:
// - kAppended: an earlier copy of the request stored the part, and `position` is its first one.
// - kConflict: the condition does not hold. `position` has an entry with all tags of a set, or may
//   hide such an entry because it is unwritten, lost or unreadable, or was trimmed with all below
//   it; or it is the tail, which differs from the position that the part expects, or is below `start`.
// - kSearched: the part was not stored, and no conflict was found yet.
// The client sends all other parts again, in the same order, with the reply's `since`; a part that
// was searched, with `position` as its start. A call stops before the first part that conflicts with
// an earlier part of the same request, and stores none if another client's entry conflicts with one.
//
// The first case that applies decides:
// - kSameId (with the position): as in write.
// - kOk, in any epoch: some parts are stored already.
// - kUnreadable, kLost (with the position): a record at or above `since` is too new, damaged or lost,
//   and may contain an earlier copy of the request.
// - kBelowTrimPoint (with a position): an earlier copy may have been below it, and was trimmed.
// - kOk: the search for an earlier copy was too long for one call; all parts are kSearched.
// - kStaleEpoch: the request's epoch is lower than the object's. If `since` is right, no copy of the
//   request is in the object, or ever will be.
// - kOk: conditions do not hold, or the search for conflicts was too long for one call.
// - kBeyondStripe (with the end): the object does not accept so many positions.
// A request by a writer whose latest append is in the header needs no search for an earlier copy if
// its numbers are higher.
Result<AppendReply> append(Object& object, const AppendRequest& request);

// Returns the state of each position, and the data of entries.
Result<ReadReplyBuilder> read(Object& object, Header& header, const ReadRequest& request);

// Returns the entries of a range that have certain tags, and the gaps that may hide such an entry.
// Uses the index of tags where it covers the range, and reads every record elsewhere.
Result<SelectReplyBuilder> select(Object& object, Header& header, const SelectRequest& request);

// Compares the index of tags with the records of a range.
Result<TagsCheckReply> tags_check(Object& object, const Header& header,
                                  const RangeRequest& request);

// Rebuilds the index of tags from the records of a range.
Result<EndReply> tags_rebuild(Object& object, const Header& header, const RangeRequest& request);

// Like read, but checks the entries' checksums in the OSD, and returns states and ids without data.
Result<VerifyReply> verify(Object& object, Header& header, const VerifyRequest& request);

// Counts the entries of a range and their bytes. Also returns the lowest and highest timestamp, and
// the first unwritten position. One call examines at most count_records_max records.
Result<CountReply> count(Object& object, const Header& header, const RangeRequest& request);

// Fills the requested positions that are not filled or trimmed yet. If one of them cannot be
// filled, fills none and returns (with this position) kReadOnly if it is written, kUnreadable if
// its record is of a later version, or kLost if its record is damaged or lost.
Result<Empty> fill(Object& object, Header& header, const FillRequest& request);

// Trims positions and frees their data. Returns kUnreadable (with the first such position) if a
// record of a later version covers a position, -E2BIG if the positions are in too many records, and
// kFrozen (with the trim point) if the object is frozen and a position is not below the trim point.
Result<Empty> trim(Object& object, Header& header, const TrimRequest& request);

// Returns the tags of the entries in a range.
Result<TagsListReplyBuilder> tags_list(Object& object, const Header& header,
                                       const RangeRequest& request);

// Trims the entries at some positions and frees their data. Then merges records that are completely
// inside a range into fewer records, without the ids of trimmed entries. Fills, and records that
// are damaged or of a later version, stay as they are. Returns kFrozen (with the trim point) if the
// object is frozen.
Result<CompactReply> compact(Object& object, Header& header, const CompactRequest& request);

// Trims every position below the requested one. After the first call, readers and writers see all
// of these positions as trimmed. Each call frees a limited number of their records, and returns
// whether more are left. A record of a later version stops the trim: once all records below it are
// freed, the method returns kUnreadable (with the record's first position).
Result<MoreReply> trim_to(Object& object, Header& header, const TrimToRequest& request);

// Returns the highest position in use, and the first position that may be unwritten.
Result<HighestReply> max_position(Object& object, const Header& header,
                                  const HighestRequest& request);

Result<StatReply> stat(Object& object, const Header& header, const EpochRequest& request);

// Freezes the object permanently. A frozen object neither trims single positions nor compacts. If a
// stripe has no unwritten positions, a copy of it therefore stays correct above the trim point.
Result<Empty> freeze(Object& object, Header& header, const EpochRequest& request);

// Removes the object. Only a seal with `create` creates it again.
Result<Empty> remove(Object& object, Header& header, const EpochRequest& request);

}  // namespace zlog::stripe
