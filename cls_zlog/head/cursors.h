#pragma once

#include <cstdint>
#include <optional>

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/wire/cursor_messages.h"

// Named cursors: where a log's readers continue. No trim passes them (head.h, trim_point_raise).
namespace zlog::cursors {

using head::Head;

// Moves or makes a cursor, as CommitMode says. kNotFound: the cursor to advance does not exist.
// kExists (with its position): it exists already. kCursorAhead (with its position): it would move
// back, as if two readers used one cursor. kBelowTrimPoint: a cursor can't be made or set below the
// trim point. kLimitReached: the log has cursors_max cursors.
//
// A cursor may be advanced below the trim point, where a trim that passed it leaves it. A damaged
// cursor can be set or removed.
Result<Empty> commit(Object& object, Head& head, const CursorCommitRequest& request);

// kNotFound: the cursor does not exist.
Result<CursorReply> read(Object& object, Head& head, const CursorRequest& request);

// A page of cursors, by name.
Result<CursorListReply> list(Object& object, Head& head, const NamesRequest& request);

// kNotFound: the cursor does not exist.
Result<Empty> remove(Object& object, Head& head, const CursorRequest& request);

// Sets `out` to the lowest position of a cursor, if there is a cursor.
Failure lowest(Object& object, std::optional<uint64_t>* out);

}  // namespace zlog::cursors
