#pragma once

#include "cls_zlog/stripe/header.h"
#include "cls_zlog/wire/read_reply.h"
#include "cls_zlog/wire/select_messages.h"

// The methods on a stripe object, which holds its share of a stripe's positions. All of them can
// return
//   -EINVAL        the request is about positions of another object
//   -ENOENT        the object was never sealed, or was removed
//   -EIO           required stored bytes are damaged
//   kStoredTooNew  a later version stored required bytes
//   kStaleEpoch    (with the object's epoch) the request's epoch is lower than the object's
// A method decides what to return before it changes anything. A method that does only a limited
// part of its work returns how far it got, and the client calls it again.
namespace zlog::stripe {

// Raises the object's epoch by at most epochs_ahead_max; the object then refuses requests with
// lower epochs. Returns the highest position in use, how full the object is, and whether seal
// created it. The first seal with the stripe's start bounds the object: write, fill and trim then
// return kBeyondStripe (with the first position that is too high) from object_positions_max
// positions above the start on. Creates a missing object only if `create` is set, which is for new
// stripes; otherwise returns -ENOENT, so that an empty object never replaces a lost one. Returns
// kInvalidEpoch (with the object's epoch) if the new epoch is not higher or is too high, -EINVAL if
// the object was created for other positions, and -EEXIST if seal did not create the object.
Result<SealReply> seal(Object& object, const SealRequest& request);

// Writes either all of the entries or none, and returns how full the object is. Checks in this
// order:
// - Every position already has its entry (same writer, number, data and tags): kOk in any epoch.
//   kSameId (with the first such position): only compressed data remains to be compared.
// - A record is of a later version, damaged or lost, and may have this entry: kUnreadable or kLost
//   (with the first such position).
// - At least one entry is not stored, and the epoch is stale: kStaleEpoch.
// - A position has another entry, or is filled or trimmed: kReadOnly (with the first such
//   position).
Result<Fullness> write(Object& object, const WriteRequest& request);

// Returns the state of each position, and the data of entries.
Result<ReadReplyBuilder> read(Object& object, Header& header, const ReadRequest& request);

// Returns the entries of a range that have certain tags, and the gaps that may hide such an entry.
// Looks the tags up in the index, and reads every record of positions that the index does not
// cover. Does a limited part of the work.
Result<SelectReplyBuilder> select(Object& object, Header& header, const SelectRequest& request);

// Compares the index of tags with the records. Does a limited part of the work.
Result<TagsCheckReply> tags_check(Object& object, const Header& header,
                                  const RangeRequest& request);

// Rebuilds the index of tags from the records. Does a limited part of the work.
Result<EndReply> tags_rebuild(Object& object, const Header& header, const RangeRequest& request);

// Like read, but checks the checksums in the OSD, and returns rows of states and ids but no data.
Result<VerifyReply> verify(Object& object, Header& header, const VerifyRequest& request);

// Counts the entries of a range and their bytes. Finds when they were appended, and the first
// unwritten position. Does a limited part of the work.
Result<CountReply> count(Object& object, const Header& header, const RangeRequest& request);

// Fills either all positions or none. Skips filled and trimmed ones. Returns kReadOnly (with the
// first such position) if the position is written. Returns kUnreadable if its record is of a later
// version. Returns kLost if its record is damaged or lost.
Result<Empty> fill(Object& object, Header& header, const FillRequest& request);

// Trims positions and frees their data. Returns kUnreadable (with the first such position) if the
// position's record is of a later version. Returns -E2BIG if the positions are in too many records.
Result<Empty> trim(Object& object, Header& header, const TrimRequest& request);

// Returns the tags of the entries in a range. Does a limited part of the work.
Result<TagsListReplyBuilder> tags_list(Object& object, const Header& header,
                                       const RangeRequest& request);

// Trims the entries at some positions and frees their data. Then merges the remaining entries of
// all records that are completely inside a range into fewer records, without the ids of the trimmed
// entries. Does not change fills, or records that are damaged or of a later version. Does a limited
// part of the work.
Result<CompactReply> compact(Object& object, Header& header, const CompactRequest& request);

// Trims every position below the requested one. Frees a limited number of the records below it, and
// returns whether some are left. Readers and writers see all of these positions as trimmed after
// the first call. The exception is a record of a later version: only the positions below it are
// trimmed, and once their records are freed, the method returns kUnreadable (with the first
// position of the later record).
Result<MoreReply> trim_to(Object& object, Header& header, const TrimToRequest& request);

// Returns the highest position in use, and the first position that may be unwritten.
Result<HighestReply> max_position(Object& object, const Header& header,
                                  const HighestRequest& request);

Result<StatReply> stat(Object& object, const Header& header, const EpochRequest& request);

// Removes the object. Only a seal with `create` creates it again.
Result<Empty> remove(Object& object, Header& header, const EpochRequest& request);

}  // namespace zlog::stripe
