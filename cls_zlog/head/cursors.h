#pragma once

#include <cstdint>
#include <optional>

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/wire/cursor_messages.h"

// The methods on named cursors. A cursor stores the position at which a reader continues. A trim
// passes a cursor only if its request allows that (trim_point_raise in head.h).
namespace zlog::cursors {

using head::Head;

// Creates a cursor, advances it or sets it to any position, as the request's CommitMode says.
// Returns kExists (with its position) if the cursor to create already exists, and kNotFound if the
// cursor to advance does not exist. Returns kCursorAhead (with its position) if the cursor to
// advance is already further, probably because two readers use it. Returns kBelowTrimPoint if a
// cursor would be created or set below the trim point; it can still be advanced there. Returns
// kLimitReached if the log already has cursors_max cursors. A damaged cursor can be set or removed.
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
