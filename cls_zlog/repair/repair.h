#pragma once

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/repair_messages.h"
#include "cls_zlog/wire/stripe_messages.h"

// The methods that put right in one copy of an object what it has damaged, from another. Where the
// store keeps copies a client asks each for itself, and what `heal` installs gets to all of them.
// Which bytes are right their checksums say; no epoch is compared, since nothing that was ever
// acknowledged or read changes. All answer -ENOENT where nothing is stored under the name.
namespace zlog::repair {

// The attributes and keys of this copy that fail their checksum, and a newest view that is gone, a
// bounded number per call; of a stripe object the attribute alone, since `verify` tells of its positions.
Result<DamagedReply> damaged(Object& object, const DamagedRequest& request);

// A value as this copy has it: of an attribute, of a key, or the record that covers a position,
// with all of its data. -EIO: any of that fails its checksum here, or the stripe object's header
// does. kLost (with the first position): the record's index does, so that nothing here tells which
// one is right. kUnreadable: a later version stored the record. -EINVAL: a name of a record.
Result<SalvageReply> salvage(Object& object, const SalvageRequest& request);

// Installs a value, as salvage answered it, where what is stored under this name fails its
// checksum, a record where the header knows that one has vanished, and the newest view where that
// has; the same bytes over sound ones, too, so that every copy gets them. kReadOnly (of a record with
// its first position): something else is stored, and it is sound. kBelowTrimPoint (with the trim
// point): the record's positions are trimmed. -EINVAL: what is offered is damaged itself, or belongs
// elsewhere. -EIO: of a record, the object's header is damaged, which has to come first.
Result<Empty> heal(Object& object, const HealRequest& request);

}  // namespace zlog::repair
