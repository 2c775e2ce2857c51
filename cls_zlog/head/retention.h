#pragma once

#include "cls_zlog/head/head_state.h"

// What retention remembers of a log between two rounds: any bytes to the class.
namespace zlog::retention {

using head::Head;

// The state and its version; version 0 and an empty state if none was written.
Result<RetentionReply> read(Object& object, Head& head, const LogRequest& request);

// Stores the state's next version. kSuperseded (with the stored version): it was made from another
// version, by a client that enforced retention at the same time. A damaged state counts as version
// 0.
Result<Empty> write(Object& object, Head& head, const RetentionWriteRequest& request);

}  // namespace zlog::retention
