#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cls_zlog/base/object.h"

// Named cursors of a log's readers, kept by its head object: where each will go on reading, so that
// it can stop and be started again elsewhere, and so that no trim takes from it what it has not
// read (head.h, trim_point_raise). What the methods take and answer is in cursor_messages.h and
// docs/formats/wire.md. All answer -EINVAL for a malformed request, -ENOENT when the log does not
// exist or has another id, -EIO when stored bytes are damaged.
namespace zlog::cursors {

// Moves a cursor, or makes it; CommitMode says which. kNotWritten: there is no such cursor to
// advance. kReadOnly (with its position): it is there already, or advancing would move it back; so
// the later of two readers of one cursor wins and neither undoes the other. kInvalidated (with the
// trim point): a cursor can't be made or set below the trim point, where nothing is left to keep.
// -EMFILE: the log has cursors_max of them.
//
// Advancing goes on below the trim point: a trim that was told to pass the cursor leaves it where
// it is, so that its reader learns what it has missed.
int commit(Object& object, std::string_view in, std::string* out);

// One cursor. kNotWritten: there is none of that name.
int read(Object& object, std::string_view in, std::string* out);

// Cursors in the order of their names, a page at a time.
int list(Object& object, std::string_view in, std::string* out);

// Removes a cursor: it holds no trim back any more. kNotWritten: there is none of that name.
int remove(Object& object, std::string_view in, std::string* out);

// Sets `out` to the lowest position of a cursor, to nothing when there is no cursor. For methods
// on the same object.
int lowest(Object& object, std::optional<uint64_t>* out);

}  // namespace zlog::cursors
