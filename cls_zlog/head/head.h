#pragma once

#include <string>
#include <string_view>

#include "cls_zlog/base/object.h"

// The methods on a log's head object: the epoch counter, the views, and a floor for the tail. What
// each takes and answers is in head_messages.h and docs/formats/wire.md. All answer -EINVAL for a
// malformed request, -ENOENT when the log does not exist, -EIO when stored bytes are damaged.
namespace zlog::head {

// Makes the head of a new log: counter 0, no view. -EEXIST: there is one.
int create(Object& object, std::string_view in, std::string* out);

// Hands out the next epoch: adds one to the durable counter and answers it, with the tail floor.
// After that no tail_raise of an earlier epoch succeeds. With a width, the stripe that may be made
// for this epoch is noted as loose (stripe_index.h), before any of its objects exists.
int epoch_next(Object& object, std::string_view in, std::string* out);

// The counter, the newest view's epoch, the tail floor, the trim point and the log's id, as they
// are.
int epoch_read(Object& object, std::string_view in, std::string* out);

// Raises the tail floor to a tail that was told to somebody, so that no later epoch starts below
// it. kStaleEpoch (with the counter): the epoch is not the last one handed out. -ENOENT also when
// the log has another id: else the tail of a removed log would make holes in a new one of its name.
int tail_raise(Object& object, std::string_view in, std::string* out);

// Raises the trim point: every position below it counts as trimmed from now on, and its space may
// be freed. It never falls. Raising it costs no epoch. Archived stripes below it become loose, a
// bounded number per call; answers whether some are left. kReadOnly (with the lowest one): a cursor
// (cursors.h) lies below it, and the request does not say that it may pass cursors. -ENOENT also
// when the log has another id.
int trim_point_raise(Object& object, std::string_view in, std::string* out);

// Takes a view if it was made from the newest one and may follow it (view.h); a view that is the
// newest already is taken again. The stripes that it leaves out are archived, or loose if nothing in
// them is needed; views of epochs long ago are removed. kInvalidEpoch: its epoch is not above the newest view's (answers
// that) or was never handed out (answers the counter). kStaleEpoch (with the newest view's epoch):
// it was made from another view.
int view_propose(Object& object, std::string_view in, std::string* out);

// Views, ascending from an epoch on, or the newest.
int view_read(Object& object, std::string_view in, std::string* out);

// Removes the head of a removed log. kInvalidEpoch (with the newest view's epoch): the newest view
// does not say so, or has another epoch.
int remove(Object& object, std::string_view in, std::string* out);

}  // namespace zlog::head
