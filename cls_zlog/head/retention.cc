#include "cls_zlog/head/retention.h"

#include "cls_zlog/head/head_state.h"
#include "cls_zlog/head/omap_table.h"

namespace zlog::retention {
namespace {

using head::Head;

constexpr head::OmapTable<RetentionReply> kStates("r.");

Failure load(Object& object, RetentionReply* out) {
  const Failure loaded = kStates.get(object, kStates.key(""), out);
  return loaded.code == -ENOENT ? Failure() : loaded;
}

}  // namespace

Result<RetentionReply> read(Object& object, const LogRequest& request) {
  Head head;
  ZLOG_TRY(Head::load(object, request.log_id, &head));
  RetentionReply stored;
  ZLOG_TRY(load(object, &stored));
  stored.further = {};
  return stored;
}

Result<Empty> write(Object& object, const RetentionWriteRequest& request) {
  Head head;
  ZLOG_TRY(Head::load(object, request.log_id, &head));
  RetentionReply stored;
  const Failure loaded = load(object, &stored);
  if (loaded.code == -EIO) {
    stored = {};
  } else {
    ZLOG_TRY(loaded);
  }
  if (request.version != stored.version) return Failure{kSuperseded, stored.version};
  stored.version++;
  stored.state = request.state;
  ZLOG_TRY(kStates.put(object, kStates.key(""), stored));
  return Empty();
}

}  // namespace zlog::retention
