#include "cls_zlog/head/directory.h"

#include "cls_zlog/head/omap_table.h"

namespace zlog::directory {
namespace {

using head::OmapTable;

// A log, under its name.
struct Entry {
  uint64_t log_id = 0;

  template <typename V>
  void each(V& v) {
    v("log_id", log_id);
  }
};

constexpr OmapTable<Entry> kNames("n.");

// The announced address, empty when there is none.
Failure load_announced(Object& object, AddressMessage* out) {
  const Failure loaded = load_attribute(object, kSequencer, out);
  return loaded.code == -ENOENT ? Failure{} : loaded;
}

}  // namespace

Result<Empty> add(Object& object, const DirectoryEntryRequest& request) {
  ZLOG_TRY(object.create(false));
  ZLOG_TRY(kNames.put(object, kNames.key(request.name), {request.log_id}));
  return Empty();
}

Result<Empty> remove(Object& object, const DirectoryEntryRequest& request) {
  const std::string key = kNames.key(request.name);
  Entry entry;
  const Failure loaded = kNames.get(object, key, &entry);
  if (loaded.code == -ENOENT) return Empty();
  ZLOG_TRY(loaded);
  // Else the name belongs to another log by now.
  if (entry.log_id == request.log_id) ZLOG_TRY(object.omap_remove(key));
  return Empty();
}

Result<DirectoryListReply> list(Object& object, const DirectoryListRequest& request) {
  std::vector<OmapTable<Entry>::Row> rows;
  DirectoryListReply reply;
  ZLOG_TRY(kNames.list(object, kNames.key(request.after), request.count_max, &rows, &reply.more));
  for (auto& [name, entry] : rows) {
    if (!valid_name(name)) return Failure{-EIO};
    reply.names.push_back(std::move(name));
  }
  return reply;
}

Result<Empty> announce(Object& object, const AddressMessage& request) {
  if (request.address.empty()) return Failure{-EINVAL};
  ZLOG_TRY(object.create(false));
  ZLOG_TRY(save_attribute(object, kSequencer, request));
  return Empty();
}

Result<Empty> withdraw(Object& object, const AddressMessage& request) {
  AddressMessage announced;
  ZLOG_TRY(load_announced(object, &announced));
  if (announced.address.empty() || announced.address != request.address) return Empty();
  ZLOG_TRY(save_attribute(object, kSequencer, AddressMessage()));
  return Empty();
}

Result<AddressMessage> find(Object& object, const Empty&) {
  AddressMessage announced;
  ZLOG_TRY(load_announced(object, &announced));
  return announced;
}

}  // namespace zlog::directory
