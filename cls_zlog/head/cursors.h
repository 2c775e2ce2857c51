#pragma once

#include <cstdint>
#include <optional>

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/wire/cursor_messages.h"

// The methods on named cursors, which are the positions at which readers of a log continue. A trim
// passes a cursor only if its request says so (head.h, trim_point_raise).
namespace zlog::cursors {

using head::Head;

// Creates, moves or sets a cursor, depending on the CommitMode. Returns kNotFound if the cursor to
// advance does not exist. Returns kExists (with its position) if the cursor to create exists
// already. Returns kCursorAhead (with its position) if the cursor would move back; two readers may
// be using it. Returns kBelowTrimPoint if a cursor cannot be created or set below the trim point.
// Returns kLimitReached if the log already has cursors_max cursors.
//
// A trim that passes a cursor leaves it below the trim point, where it can still be advanced. A
// damaged cursor can be set or removed.
Result<Empty> commit(Object& object, Head& head, const CursorCommitRequest& request);

// Returns kNotFound if the cursor does not exist.
Result<CursorReply> read(Object& object, Head& head, const CursorRequest& request);

// Returns a page of cursors in the order of their names.
Result<CursorListReply> list(Object& object, Head& head, const NamesRequest& request);

// Returns kNotFound if the cursor does not exist.
Result<Empty> remove(Object& object, Head& head, const CursorRequest& request);

// Sets `out` to the lowest position of all cursors, or to nothing if there are none.
Failure lowest(Object& object, std::optional<uint64_t>* out);

}  // namespace zlog::cursors
