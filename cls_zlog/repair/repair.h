#pragma once

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/repair_messages.h"
#include "cls_zlog/wire/stripe_messages.h"

// The methods that repair damage in one replica of an object from another replica. A client asks
// each replica separately, and a repair changes all replicas. Checksums show which bytes are sound.
// Epochs are not compared, because nothing that was acknowledged or read changes. All methods
// return -ENOENT if nothing is stored under the name.
namespace zlog::repair {

// Lists this replica's attributes and keys that fail their checksum, and the newest view if it is
// missing. Checks a limited number per call. In a stripe object, checks only the attribute, because
// `verify` checks the positions.
Result<DamagedReply> damaged(Object& object, const DamagedRequest& request);

// Reads a value of this replica: an attribute, a key, or the record that covers a position, with
// all of its data. Returns -EIO if the value or the stripe object's header fails its checksum.
// Returns kLost (with the first position) if the record's index fails its checksum, so this replica
// cannot check the record's data. Returns kUnreadable if a later version stored the record. Returns
// -EINVAL if the name is that of a record.
Result<SalvageReply> salvage(Object& object, const SalvageRequest& request);

// Installs a value that salvage returned. The value that is stored under the name must either fail
// its checksum or have the same bytes, which are then written again so that every replica has them.
// The newest view, and a record that the object once had according to its header, may also be
// missing. Returns kReadOnly (with a record's first position) if another, sound value is stored.
// Returns kBelowTrimPoint (with the trim point) if the record's positions are trimmed, -EINVAL if
// the new value is damaged or belongs elsewhere, and -EIO if the object's header is damaged and
// must be repaired first.
Result<Empty> heal(Object& object, const HealRequest& request);

}  // namespace zlog::repair
