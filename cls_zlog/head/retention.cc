#include "cls_zlog/head/retention.h"

#include "cls_zlog/head/omap_table.h"

namespace zlog::retention {
namespace {

using head::or_initial;

using Stored = wire::Kept<RetentionReply>;

constexpr head::OmapTable<Stored> kStates("r.");

}  // namespace

Result<RetentionReply> read(Object& object, Head&, const LogRequest&) {
  Stored stored;
  ZLOG_TRY(or_initial(kStates.get(object, kStates.key(""), &stored)));
  return RetentionReply(stored);
}

Result<Empty> write(Object& object, Head&, const RetentionWriteRequest& request) {
  Stored stored;
  const Failure loaded = or_initial(kStates.get(object, kStates.key(""), &stored));
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
