#pragma once

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/wire/offload_messages.h"

// The methods on the records of offloaded stripes (docs/formats/offload.md). A record says which
// file has the entries of an ended stripe. Once it is placed, the stripe's objects can be removed.
namespace zlog::offloads {

using head::Head;

// Records that a stripe was written to a file. The record of a new file has the state kWritten.
// Later calls with the same file can only advance the state; a lower or equal state changes
// nothing. Returns
//   -ENOENT          also if the log is marked as removed, so that the remover finds all files
//   -EINVAL          the newest view does not allow offloads, the stripe has not ended, it does not
//                    exist, or a new file has another state
//   kBelowTrimPoint  the stripe is completely trimmed
//   kExists          (with the stripe's id) the stripe is recorded with another file
Result<Empty> put(Object& object, Head& head, const OffloadPutRequest& request);

// Returns records in ascending order. The first one contains the requested position or, if no
// record does, is the next one above it.
Result<OffloadListReply> list(Object& object, Head& head, const OffloadListRequest& request);

// Forgets the file of a trimmed stripe, after the client has removed it, or a file that was lost
// before it was placed. Also succeeds if there is no record. Returns kExists (with the stripe's id)
// if the stripe is recorded with another file, and -EINVAL if the file is placed and the stripe is
// not completely below the trim point.
Result<Empty> forget(Object& object, Head& head, const OffloadForgetRequest& request);

}  // namespace zlog::offloads
