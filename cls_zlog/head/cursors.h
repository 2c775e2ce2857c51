#pragma once

#include <cstdint>
#include <optional>

#include "cls_zlog/base/object.h"
#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/cursor_messages.h"

// Named cursors of a log's readers, kept by its head object: where each will go on reading, so that
// it can stop and be started again elsewhere, and so that no trim takes from it what it has not
// read (head.h, trim_point_raise). All answer -ENOENT when the log does not exist or has
// another id, -EIO when stored bytes are damaged, and kStoredTooNew when they are of a later
// version.
namespace zlog::cursors {

// Moves a cursor, or makes it; CommitMode says which. kNotFound: there is no such cursor to
// advance. kExists (with its position): there is one already. kCursorAhead (with its position):
// advancing would move it back; so the later of two readers of one cursor wins and neither undoes
// the other. kBelowTrimPoint: a cursor is not made or set below the trim point, where nothing is
// left to keep. kLimitReached: the log has cursors_max of them.
//
// Advancing goes on below the trim point: a trim that was told to pass the cursor leaves it where
// it is, so that its reader learns what it has missed.
Result<Empty> commit(Object& object, const CursorCommitRequest& request);

// One cursor. kNotFound: there is none of that name.
Result<CursorReply> read(Object& object, const CursorRequest& request);

// Cursors in the order of their names, a page at a time.
Result<CursorListReply> list(Object& object, const NamesRequest& request);

// Removes a cursor: it holds no trim back any more. kNotFound: there is none of that name.
Result<Empty> remove(Object& object, const CursorRequest& request);

// Sets `out` to the lowest position of a cursor, to nothing when there is no cursor. For methods
// on the same object.
Failure lowest(Object& object, std::optional<uint64_t>* out);

}  // namespace zlog::cursors
