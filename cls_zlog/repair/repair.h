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

// Lists the attributes and keys of this replica that fail their checksum, and the newest view if it
// is missing. One call checks a limited number of keys. Of a stripe object it checks only the
// attribute, because `verify` checks the positions.
Result<DamagedReply> damaged(Object& object, const DamagedRequest& request);

// Reads one value of this replica: an attribute, a key, or the record that covers a position
// together with all of its data. Returns -EIO if the value or the stripe object's header is
// damaged. Returns kLost (with the first position) if the record's index is damaged, so that its
// data cannot be checked. Returns kUnreadable if a later version of zlog wrote the record, and
// -EINVAL if the request names a record by its key.
Result<SalvageReply> salvage(Object& object, const SalvageRequest& request);

// Installs a value that salvage returned from another replica. It replaces a value that fails its
// checksum; a value with the same bytes is written again, so that every replica has it. The newest
// view, and a record that the header says was stored, may also be missing.
//
// Returns kReadOnly (with a record's first position) if another, sound value is stored. Returns
// kBelowTrimPoint (with the trim point) if the record's positions are trimmed. Returns -EINVAL if
// the new value is damaged or belongs elsewhere, and -EIO if the object's header must be repaired
// first.
Result<Empty> heal(Object& object, const HealRequest& request);

}  // namespace zlog::repair
