#include "cls_zlog/head/cursors.h"

#include <algorithm>

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/head/omap_table.h"

namespace zlog::cursors {
namespace {

using head::Head;
using head::OmapTable;
using Row = OmapTable<CursorReply>::Row;

constexpr OmapTable<CursorReply> kCursors("c.");

Failure or_not_found(const Failure& loaded) {
  return loaded.code == -ENOENT ? Failure{kNotFound} : loaded;
}

Failure put(Object& object, const std::string& key, const CursorCommitRequest& request,
            CursorReply cursor) {
  cursor.position = request.position;
  cursor.updated = request.timestamp;
  return {kCursors.put(object, key, cursor)};
}

Failure advance(Object& object, const std::string& key, const CursorCommitRequest& request) {
  CursorReply cursor;
  ZLOG_TRY(or_not_found(kCursors.get(object, key, &cursor)));
  if (request.position < cursor.position) return {kCursorAhead, cursor.position};
  return put(object, key, request, cursor);
}

// A damaged cursor can be set, which repairs it, and removed.
Failure create_or_set(Object& object, const std::string& key, const CursorCommitRequest& request,
                      uint64_t trim_point) {
  CursorReply cursor;
  const Failure loaded = kCursors.get(object, key, &cursor);
  const bool missing = loaded.code == -ENOENT;
  if (request.mode == CommitMode::kCreate && !missing) {
    ZLOG_TRY(loaded);
    return {kExists, cursor.position};
  }
  if (!missing && loaded.code != -EIO) ZLOG_TRY(loaded);
  if (request.position < trim_point) return {kBelowTrimPoint, trim_point};
  if (missing) {
    uint64_t count = 0;
    ZLOG_TRY(kCursors.count(object, limits::cursors_max, &count));
    if (count >= limits::cursors_max) return {kLimitReached, limits::cursors_max};
  }
  if (loaded.code != 0) {
    cursor = {};
    cursor.created = request.timestamp;
  }
  return put(object, key, request, cursor);
}

}  // namespace

Result<Empty> commit(Object& object, const CursorCommitRequest& request) {
  Head head;
  ZLOG_TRY(Head::load(object, request.log_id, &head));
  const std::string key = kCursors.key(request.name);
  if (request.mode == CommitMode::kAdvance) {
    ZLOG_TRY(advance(object, key, request));
  } else {
    ZLOG_TRY(create_or_set(object, key, request, head.trim_point));
  }
  return Empty();
}

Result<CursorReply> read(Object& object, const CursorRequest& request) {
  Head head;
  ZLOG_TRY(Head::load(object, request.log_id, &head));
  CursorReply cursor;
  ZLOG_TRY(or_not_found(kCursors.get(object, kCursors.key(request.name), &cursor)));
  cursor.further = {};
  return cursor;
}

Result<CursorListReply> list(Object& object, const NamesRequest& request) {
  Head head;
  ZLOG_TRY(Head::load(object, request.log_id, &head));
  std::vector<Row> rows;
  CursorListReply reply;
  ZLOG_TRY(
      kCursors.list(object, kCursors.key(request.after), request.count_max, &rows, &reply.more));
  reply.cursors.reserve(rows.size());
  for (const auto& [name, cursor] : rows) {
    reply.cursors.push_back({name, cursor.position, cursor.created, cursor.updated});
  }
  return reply;
}

Result<Empty> remove(Object& object, const CursorRequest& request) {
  Head head;
  ZLOG_TRY(Head::load(object, request.log_id, &head));
  const std::string key = kCursors.key(request.name);
  CursorReply cursor;
  const Failure loaded = kCursors.get(object, key, &cursor);
  if (loaded.code != -EIO) ZLOG_TRY(or_not_found(loaded));
  ZLOG_TRY(object.omap_remove(key));
  return Empty();
}

Failure lowest(Object& object, std::optional<uint64_t>* out) {
  out->reset();
  std::vector<Row> rows;
  bool more = false;
  ZLOG_TRY(kCursors.list(object, kCursors.key(""), limits::cursors_max, &rows, &more));
  for (const auto& [name, cursor] : rows) {
    *out = std::min(out->value_or(cursor.position), cursor.position);
  }
  return {};
}

}  // namespace zlog::cursors
