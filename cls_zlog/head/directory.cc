#include "cls_zlog/head/directory.h"

#include <algorithm>
#include <utility>

#include "cls_zlog/head/omap_table.h"

namespace zlog::directory {
namespace {

using head::OmapTable;
using head::or_initial;

struct Entry {
  uint64_t log_id = 0;

  ZLOG_FIELDS(v) { v("log_id", log_id); }
};

constexpr OmapTable<Entry> kNames("n.");

}  // namespace

Result<Empty> add(Object& object, const NamedLogRequest& request) {
  ZLOG_TRY(object.create(false));
  return failure_of(kNames.put(object, kNames.key(request.name), {request.log_id}));
}

Result<Empty> remove(Object& object, const NamedLogRequest& request) {
  const std::string key = kNames.key(request.name);
  Entry entry;
  const Failure loaded = kNames.get(object, key, &entry);
  if (loaded.code == -ENOENT) return Empty();
  ZLOG_TRY(loaded);
  return failure_of(entry.log_id == request.log_id ? object.omap_remove(key) : 0);
}

Result<DirectoryListReply> list(Object& object, const DirectoryListRequest& request) {
  DirectoryListReply reply;
  ZLOG_TRY(
      kNames.list(object, kNames.key(request.after), request.count_max, &reply.more,
                  [&](std::string name, const Entry&) { reply.names.push_back(std::move(name)); }));
  const bool sound = std::all_of(reply.names.begin(), reply.names.end(), valid_name);
  return sound ? Result<DirectoryListReply>(reply) : Failure{-EIO};
}

Result<Empty> announce(Object& object, const AddressMessage& request) {
  if (request.address.empty()) return Failure{-EINVAL};
  ZLOG_TRY(object.create(false));
  return failure_of(save_attribute(object, kSequencer, request));
}

Result<Empty> withdraw(Object& object, const AddressMessage& request) {
  AddressMessage announced;
  ZLOG_TRY(or_initial(load_attribute(object, kSequencer, &announced)));
  if (announced.address.empty() || announced.address != request.address) return Empty();
  return failure_of(save_attribute(object, kSequencer, AddressMessage()));
}

Result<AddressMessage> find(Object& object, const Empty&) {
  AddressMessage announced;
  ZLOG_TRY(or_initial(load_attribute(object, kSequencer, &announced)));
  return announced;
}

}  // namespace zlog::directory
