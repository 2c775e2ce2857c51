#pragma once

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/stripe_messages.h"
#include "cls_zlog/wire/version_messages.h"

namespace zlog {

// This release, or the next one if it is not out yet.
constexpr const char* kRelease = "0.1.0";

// Describes the process that runs the class: its number and the versions that it understands.
// Returns -ENOENT if the object does not exist.
Result<VersionReply> version(Object& object, const Empty& request);

}  // namespace zlog
