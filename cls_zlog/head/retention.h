#pragma once

#include "cls_zlog/head/head_state.h"

// The methods that store retention's state between its rounds. The class does not interpret it.
namespace zlog::retention {

using head::Head;

// Returns the state and its version; if none was written, version 0 and an empty state.
Result<RetentionReply> read(Object& object, Head& head, const LogRequest& request);

// Stores the next version of the state; a damaged state counts as version 0. Returns kSuperseded
// (with the stored version) if another client has stored a version in the meantime.
Result<Empty> write(Object& object, Head& head, const RetentionWriteRequest& request);

}  // namespace zlog::retention
