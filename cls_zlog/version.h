#pragma once

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/stripe_messages.h"
#include "cls_zlog/wire/version_messages.h"

namespace zlog {

// This release, or the next one if it is not out yet.
constexpr const char* kRelease = "0.1.0";

// Returns the number of the process that answers for an object, and the versions that this process
// understands. Returns -ENOENT if the object does not exist.
Result<VersionReply> version(Object& object, const Empty& request);

}  // namespace zlog
