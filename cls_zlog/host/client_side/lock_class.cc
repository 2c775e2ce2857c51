#include "cls_zlog/host/client_side/lock_class.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <string>
#include <vector>

#include "cls_zlog/base/result.h"
#include "cls_zlog/wire/frame.h"

// The structures are Ceph's (src/cls/lock/cls_lock_types.h and cls_lock_ops.h).
namespace zlog {
namespace client_lock {
namespace {

constexpr uint8_t kExclusive = 1, kExclusiveEphemeral = 3;
constexpr uint8_t kMayRenew = 1, kMustRenew = 2;
constexpr char kClientType = 8;                           // CEPH_ENTITY_TYPE_CLIENT
constexpr size_t kNoAddressBytes = 3 * sizeof(uint32_t);  // type, nonce and length, all 0

using Client = std::array<char, 1 + sizeof(uint64_t)>;  // type and number

// utime_t, a time or a span.
struct Time {
  uint32_t seconds = 0;
  uint32_t nanoseconds = 0;

  ZLOG_FIELDS(v) {
    v("seconds", seconds);
    v("nanoseconds", nanoseconds);
  }
  bool none() const { return seconds == 0 && nanoseconds == 0; }
  std::chrono::nanoseconds count() const {
    return std::chrono::seconds(seconds) + std::chrono::nanoseconds(nanoseconds);
  }
  static Time of(std::chrono::nanoseconds time) {
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(time);
    return {static_cast<uint32_t>(whole.count()), static_cast<uint32_t>((time - whole).count())};
  }
};

// locker_id_t
struct HolderId {
  Client client{};
  std::string cookie;

  ZLOG_FIELDS(v) {
    v("client", client);
    v("cookie", cookie);
  }
  bool operator==(const HolderId& other) const {
    return client == other.client && cookie == other.cookie;
  }
};

// locker_info_t. The client's address is a structure that is not needed.
struct HolderInfo {
  Time expires;
  uint8_t address_marker = 1;
  uint8_t address_version = 1;
  uint8_t address_compat = 1;
  std::string address = std::string(kNoAddressBytes, '\0');
  std::string description;

  ZLOG_FIELDS(v) {
    expires.each(v);
    v("address_marker", address_marker);
    v("address_version", address_version);
    v("address_compat", address_compat);
    v("address", address);
    v("description", description);
  }
};

// An element of a map. Key and value each have a frame.
struct Holder {
  HolderId id;
  HolderInfo info;
};
bool append_frame(const Holder& holder, std::string* out) {
  return wire::append_frame(holder.id, out) && wire::append_frame(holder.info, out);
}
wire::Decoded decode_frame(wire::Reader* reader, Holder* out) {
  const wire::Decoded decoded = wire::decode_frame(reader, &out->id);
  return decoded == wire::Decoded::kOk ? wire::decode_frame(reader, &out->info) : decoded;
}

// lock_info_t, and what get_info replies.
struct Lock {
  std::vector<Holder> holders;
  uint8_t type = 0;
  std::string tag;

  ZLOG_FIELDS(v) {
    v("holders", holders);
    v("type", type);
    v("tag", tag);
  }
  auto find(const HolderId& id) {
    return std::find_if(holders.begin(), holders.end(),
                        [&](const Holder& holder) { return holder.id == id; });
  }
};

// cls_lock_lock_op
struct LockRequest {
  std::string name;
  uint8_t type = 0;
  std::string cookie;
  std::string tag;
  std::string description;
  Time duration;
  uint8_t flags = 0;

  ZLOG_FIELDS(v) {
    v("name", name);
    v("type", type);
    v("cookie", cookie);
    v("tag", tag);
    v("description", description);
    duration.each(v);
    v("flags", flags);
  }
};

// cls_lock_unlock_op, for a lock of the requesting client, and cls_lock_break_op, for any lock.
template <bool own>
struct RemoveRequest {
  std::string name;
  HolderId holder;

  ZLOG_FIELDS(v) {
    v("name", name);
    if (!own) v("client", holder.client);
    v("cookie", holder.cookie);
  }
};

// cls_lock_get_info_op
struct InfoRequest {
  std::string name;

  ZLOG_FIELDS(v) { v("name", name); }
};

std::chrono::nanoseconds now() { return std::chrono::system_clock::now().time_since_epoch(); }

std::string attribute_of(const std::string& name) { return "lock." + name; }

// Decodes the requesting client and the request that follows.
template <typename Request>
int decode(std::string_view in, Client* client, Request* request) {
  if (in.size() < client->size()) return -EINVAL;
  in.copy(client->data(), client->size());
  in.remove_prefix(client->size());
  return wire::decode(in, request) == wire::Decoded::kOk ? 0 : -EINVAL;
}

// Loads a lock without its expired holders.
int load(Object& object, const std::string& name, Lock* lock) {
  std::string value;
  const int r = object.attr_get(attribute_of(name), &value);
  if (r == -ENOENT || r == -ENODATA) return 0;
  if (r < 0) return r;
  if (wire::decode(value, lock) != wire::Decoded::kOk) return -EIO;
  const auto expired = [time = now()](const Holder& holder) {
    return !holder.info.expires.none() && holder.info.expires.count() < time;
  };
  std::vector<Holder>& holders = lock->holders;
  holders.erase(std::remove_if(holders.begin(), holders.end(), expired), holders.end());
  return 0;
}

int save(Object& object, const std::string& name, const Lock& lock) {
  return object.attr_set(attribute_of(name), wire::encoded(lock));
}

int lock(Object& object, std::string_view in, std::string*) {
  HolderId id;
  LockRequest request;
  ZLOG_TRY(decode(in, &id.client, &request));
  id.cookie = request.cookie;
  Lock lock;
  ZLOG_TRY(load(object, request.name, &lock));
  if (!lock.holders.empty() && lock.tag != request.tag) return -EBUSY;
  if (const auto own = lock.find(id); own != lock.holders.end()) {
    if ((request.flags & (kMayRenew | kMustRenew)) == 0) return -EEXIST;
    lock.holders.erase(own);
  } else if ((request.flags & kMustRenew) != 0) {
    return -ENOENT;
  }
  const bool exclusive = request.type == kExclusive || request.type == kExclusiveEphemeral;
  if (!lock.holders.empty() && (exclusive || lock.type != request.type)) return -EBUSY;
  lock.type = request.type;
  lock.tag = request.tag;
  Holder holder = {id, {}};
  if (!request.duration.none()) holder.info.expires = Time::of(now() + request.duration.count());
  holder.info.description = request.description;
  lock.holders.push_back(holder);
  return save(object, request.name, lock);
}

template <bool own>
int remove(Object& object, std::string_view in, std::string*) {
  Client client;
  RemoveRequest<own> request;
  ZLOG_TRY(decode(in, &client, &request));
  if (own) request.holder.client = client;
  Lock lock;
  ZLOG_TRY(load(object, request.name, &lock));
  const auto found = lock.find(request.holder);
  if (found == lock.holders.end()) return -ENOENT;
  lock.holders.erase(found);
  return save(object, request.name, lock);
}

int get_info(Object& object, std::string_view in, std::string* out) {
  Client client;
  InfoRequest request;
  ZLOG_TRY(decode(in, &client, &request));
  Lock lock;
  ZLOG_TRY(load(object, request.name, &lock));
  *out = wire::encoded(lock);
  return 0;
}

constexpr Method kMethods[] = {
    {"lock", kRead | kWrite, lock},
    {"unlock", kRead | kWrite, remove<true>},
    {"break_lock", kRead | kWrite, remove<false>},
    {"get_info", kRead, get_info},
};

}  // namespace
}  // namespace client_lock

const Method* find_lock_method(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(client_lock::kMethods), std::end(client_lock::kMethods),
                   [&](const Method& method) { return name == method.name; });
  return found == std::end(client_lock::kMethods) ? nullptr : found;
}

SharedRequest lock_request(uint64_t client, std::string_view request) {
  std::string bytes(1, client_lock::kClientType);
  wire::append(&bytes, client);
  return RequestBytes::copy_of(bytes.append(request));
}

}  // namespace zlog
