#pragma once

#include <cstdint>
#include <optional>

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/wire/cursor_messages.h"

// The methods on named cursors. A cursor stores the position at which a reader continues. The trim
// point can pass a cursor only if the request allows it (trim_point_raise in head.h).
namespace zlog::cursors {

using head::Head;

// Creates a cursor, advances it or sets it to any position, as the request's CommitMode says. A
// damaged cursor can be set or removed. Returns
//   kExists          (with its position) the cursor to create already exists
//   kNotFound        the cursor to advance does not exist
//   kCursorAhead     (with its position) the cursor to advance is already further, probably because
//                    two readers use it
//   kBelowTrimPoint  a cursor would be created or set below the trim point; it can advance there
//   kLimitReached    the log already has cursors_max cursors
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
