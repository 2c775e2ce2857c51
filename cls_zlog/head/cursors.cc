#include "cls_zlog/head/cursors.h"

#include <algorithm>

#include "cls_zlog/head/omap_table.h"

namespace zlog::cursors {
namespace {

using head::or_not_found;

using Cursor = wire::Kept<CursorReply>;

constexpr head::OmapTable<Cursor> kCursors("c.");

}  // namespace

Result<Empty> commit(Object& object, Head& head, const CursorCommitRequest& request) {
  const std::string key = kCursors.key(request.name);
  Cursor cursor;
  const Failure loaded = kCursors.get(object, key, &cursor);
  const bool missing = loaded.code == -ENOENT;
  if (request.mode == CommitMode::kAdvance) {
    ZLOG_TRY(or_not_found(loaded));
    if (request.position < cursor.position) return Failure{kCursorAhead, cursor.position};
  } else if (request.mode == CommitMode::kCreate && !missing) {
    ZLOG_TRY(loaded);
    return Failure{kExists, cursor.position};
  } else {
    if (!missing && loaded.code != -EIO) ZLOG_TRY(loaded);
    if (request.position < head.trim_point) return Failure{kBelowTrimPoint, head.trim_point};
    if (missing) ZLOG_TRY(kCursors.check_space(object, limits::cursors_max));
  }
  if (loaded.code != 0) {
    cursor = {};
    cursor.created = request.timestamp;
  }
  cursor.position = request.position;
  cursor.updated = request.timestamp;
  return failure_of(kCursors.put(object, key, cursor));
}

Result<CursorReply> read(Object& object, Head&, const CursorRequest& request) {
  Cursor cursor;
  ZLOG_TRY(or_not_found(kCursors.get(object, kCursors.key(request.name), &cursor)));
  return CursorReply(cursor);
}

Result<CursorListReply> list(Object& object, Head&, const NamesRequest& request) {
  CursorListReply reply;
  ZLOG_TRY(kCursors.list(object, kCursors.key(request.after), request.count_max, &reply.more,
                         [&](const std::string& name, const Cursor& cursor) {
                           reply.cursors.push_back({cursor, name});
                         }));
  return reply;
}

Result<Empty> remove(Object& object, Head&, const CursorRequest& request) {
  const std::string key = kCursors.key(request.name);
  Cursor cursor;
  const Failure loaded = kCursors.get(object, key, &cursor);
  if (loaded.code != -EIO) ZLOG_TRY(or_not_found(loaded));
  return failure_of(object.omap_remove(key));
}

Failure lowest(Object& object, std::optional<uint64_t>* out) {
  out->reset();
  bool more = false;
  return kCursors.list(object, kCursors.key(""), limits::cursors_max, &more,
                       [&](const std::string&, const Cursor& cursor) {
                         *out = std::min(out->value_or(cursor.position), cursor.position);
                       });
}

}  // namespace zlog::cursors
