#pragma once

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/stripe_messages.h"
#include "cls_zlog/wire/version_messages.h"

namespace zlog {

// The release that this is, or is to become.
constexpr const char* kRelease = "0.1.0";

// Tells who answers for an object, and what that process understands. -ENOENT: there is no object.
Result<VersionReply> version(Object& object, const Empty& request);

}  // namespace zlog
