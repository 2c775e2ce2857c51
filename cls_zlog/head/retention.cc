#include "cls_zlog/head/retention.h"

#include "cls_zlog/head/omap_table.h"

namespace zlog::retention {
namespace {

using Stored = wire::Kept<RetentionReply>;

constexpr head::OmapTable<Stored> kStates("r.");

Failure load(Object& object, Stored* out) {
  const Failure loaded = kStates.get(object, kStates.key(""), out);
  return loaded.code == -ENOENT ? Failure() : loaded;
}

}  // namespace

Result<RetentionReply> read(Object& object, Head&, const LogRequest&) {
  Stored stored;
  ZLOG_TRY(load(object, &stored));
  return RetentionReply(stored);
}

Result<Empty> write(Object& object, Head&, const RetentionWriteRequest& request) {
  Stored stored;
  const Failure loaded = load(object, &stored);
  if (loaded.code == -EIO) {
    stored = {};
  } else {
    ZLOG_TRY(loaded);
  }
  if (request.version != stored.version) return Failure{kSuperseded, stored.version};
  stored.version++;
  stored.state = request.state;
  return failure_of(kStates.put(object, kStates.key(""), stored));
}

}  // namespace zlog::retention
