#pragma once

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/head_messages.h"

// What those that enforce a log's retention remember of it between two rounds, kept by its head
// object: any bytes to the class. Both answer -ENOENT when the log does not exist or has another
// id, -EIO when stored bytes are damaged, and kStoredTooNew when they are of a later version.
namespace zlog::retention {

// The state and its version; version 0 and no state when none was written yet.
Result<RetentionReply> read(Object& object, const LogRequest& request);

// Stores the state's next version. kSuperseded (with the stored version): it was made from another
// one, so that of two that enforce at once the later one changes nothing. What is damaged is taken
// for version 0.
Result<Empty> write(Object& object, const RetentionWriteRequest& request);

}  // namespace zlog::retention
