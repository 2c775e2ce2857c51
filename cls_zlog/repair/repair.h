#pragma once

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/repair_messages.h"
#include "cls_zlog/wire/stripe_messages.h"

// The methods that repair damage in one replica of an object from another replica. A client asks each
// replica for itself, and `repair` installs a value in all of them. Checksums show which bytes are sound;
// epochs are not compared, since nothing that was acknowledged or read changes. All return -ENOENT if
// nothing is stored under the name.
namespace zlog::repair {

// Lists the attributes and keys of this replica that fail their checksum, and a missing newest view, a
// bounded number per call; of a stripe object only the attribute, since `verify` checks its positions.
Result<DamagedReply> damaged(Object& object, const DamagedRequest& request);

// Reads a value of this replica: an attribute, a key, or the record that covers a position, with all
// its data. -EIO: it fails its checksum, or the stripe object's header does. kLost (with the first
// position): the record's index does, so this replica can't check its data. kUnreadable: a later
// version stored the record. -EINVAL: the name is a record's.
Result<SalvageReply> salvage(Object& object, const SalvageRequest& request);

// Installs a value that salvage returned if the value stored under this name fails its checksum; a
// record also if the header shows that it has vanished, and the newest view if that is missing; and
// equal bytes over sound ones, so that every replica gets them. kReadOnly (with a record's first
// position): the stored value is another one, and sound. kBelowTrimPoint (with the trim point): the
// record's positions are trimmed. -EINVAL: the offered value is damaged or belongs elsewhere. -EIO: the
// object's header is damaged, and has to be repaired before its records.
Result<Empty> heal(Object& object, const HealRequest& request);

}  // namespace zlog::repair
