#pragma once

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/repair_messages.h"
#include "cls_zlog/wire/stripe_messages.h"

// The methods that repair damage in one replica of an object with data from another replica. A
// client reads from each replica separately, and its repair is written to all of them. Checksums
// show which bytes are sound. Repairs ignore epochs, because they change nothing that a client has
// acknowledged or read. All methods return -ENOENT if nothing is stored under the requested name.
namespace zlog::repair {

// Lists the attributes and keys in this replica that fail their checksum. Also lists the newest
// view if it is missing. One call checks a limited number of keys. In a stripe object, only the
// attribute is checked here, because `verify` checks the rest.
Result<DamagedReply> damaged(Object& object, const DamagedRequest& request);

// Reads one value of this replica: an attribute, a key, or the record that covers a position, with
// its data. Returns -EIO if the value, the record's data or the stripe object's header is damaged.
// Returns kLost if the record itself is damaged, and kUnreadable if a later version of zlog wrote
// it (both with its first position). Returns -EINVAL if a record is requested by its key.
Result<SalvageReply> salvage(Object& object, const SalvageRequest& request);

// Stores a value that salvage() read from another replica. The value replaces a damaged one, or is
// written again over an equal one, so that every replica has it. If nothing is stored, the value
// must be the newest view, or a record that should exist according to the header. Returns
//   kReadOnly        (with a record's first position) a different, intact value is stored
//   kBelowTrimPoint  (with the trim point) the record's positions are trimmed
//   -EINVAL          the new value is damaged, or does not belong under this name
//   -EIO             the stripe object's header is damaged and must be repaired first
Result<Empty> heal(Object& object, const HealRequest& request);

}  // namespace zlog::repair
