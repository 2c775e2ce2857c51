#include "cls_zlog/head/directory.h"

#include <cerrno>
#include <map>

#include "cls_zlog/base/codes.h"
#include "cls_zlog/base/envelope.h"
#include "cls_zlog/wire/head_messages.h"
#include "cls_zlog/base/limits.h"
#include "cls_zlog/base/names.h"
#include "cls_zlog/wire/wire.h"

namespace zlog::directory {
namespace {

constexpr const char* kSequencer = "zlog.sequencer";  // attribute
constexpr std::string_view kNamePrefix = "n.";

std::string name_key(std::string_view name) {
  return std::string(kNamePrefix).append(name);
}

// The announced address, empty when there is none.
int load_address(Object& object, std::string* out) {
  out->clear();
  std::string value;
  std::string_view body;
  const int r = load_attribute(object, kSequencer, &value, &body);
  if (r == -ENOENT) return 0;
  if (r < 0) return r;
  if (!valid_address(body)) return -EIO;
  out->assign(body);
  return 0;
}

// One log as it is stored: its name in the key, its id in the value.
bool unwrap_entry(std::string_view key, std::string_view value, uint64_t* log_id) {
  Unwrapped stored;
  if (!unwrap(key, value, &stored) || !stored.payload.empty()) return false;
  wire::Reader reader(stored.body);
  *log_id = reader.u64();
  return reader.done();
}

bool decode_name(std::string_view key, std::string_view value, std::string* out) {
  uint64_t log_id = 0;
  if (!unwrap_entry(key, value, &log_id)) return false;
  out->assign(key.substr(kNamePrefix.size()));
  return valid_log_name(*out);
}

}  // namespace

int add(Object& object, std::string_view in, std::string*) {
  DirectoryEntryRequest request;
  if (const int r = DirectoryEntryRequest::decode(in, &request); r < 0) return r;
  if (const int r = object.create(false); r < 0) return r;
  const std::string key = name_key(request.name);
  std::string id;
  wire::Writer(&id).u64(request.log_id);
  return object.omap_set(key, wrap(key, id));
}

int remove(Object& object, std::string_view in, std::string*) {
  DirectoryEntryRequest request;
  if (const int r = DirectoryEntryRequest::decode(in, &request); r < 0) return r;
  const std::string key = name_key(request.name);
  std::string value;
  const int r = object.omap_get(key, &value);
  if (r == -ENOENT) return kOk;
  if (r < 0) return r;
  uint64_t log_id = 0;
  if (!unwrap_entry(key, value, &log_id)) return -EIO;
  if (log_id != request.log_id) return kOk;  // the name belongs to another log by now
  return object.omap_remove(key);
}

int list(Object& object, std::string_view in, std::string* out) {
  DirectoryListRequest request;
  if (const int r = DirectoryListRequest::decode(in, &request); r < 0) return r;
  std::vector<std::string> names;
  std::string after = name_key(request.after);
  DirectoryListReply reply;
  reply.more = true;
  while (reply.more && names.size() < request.count_max) {
    Page page;
    const int r = object.omap_list(after, std::string(kNamePrefix),
                                   request.count_max - names.size(), &page, &reply.more);
    if (r < 0) return r;
    if (page.empty()) {
      if (reply.more) return -EIO;
      break;
    }
    for (const auto& [key, value] : page) {
      if (!decode_name(key, value.bytes, &names.emplace_back())) return -EIO;
    }
    after = page.rbegin()->first;
  }
  reply.names.assign(names.begin(), names.end());
  *out = reply.encode();
  return kOk;
}

int announce(Object& object, std::string_view in, std::string*) {
  AddressMessage request;
  if (const int r = AddressMessage::decode(in, &request); r < 0) return r;
  if (request.address.empty()) return -EINVAL;
  if (const int r = object.create(false); r < 0) return r;
  return object.attr_set(kSequencer, wrap(kSequencer, request.address));
}

int withdraw(Object& object, std::string_view in, std::string*) {
  AddressMessage request;
  if (const int r = AddressMessage::decode(in, &request); r < 0) return r;
  std::string announced;
  if (const int r = load_address(object, &announced); r < 0) return r;
  if (announced.empty() || announced != request.address) return kOk;
  return object.attr_set(kSequencer, wrap(kSequencer, {}));
}

int find(Object& object, std::string_view in, std::string* out) {
  if (const int r = decode_empty(in); r < 0) return r;
  std::string announced;
  if (const int r = load_address(object, &announced); r < 0) return r;
  *out = AddressMessage{announced}.encode();
  return kOk;
}

}  // namespace zlog::directory
