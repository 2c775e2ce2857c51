// The host inside ceph-osd. Only this file depends on Ceph's object class API. It must catch every
// exception: otherwise the OSD aborts, and the client resends the call to the next OSD.

#include <rados/objclass.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/base/object.h"
#include "cls_zlog/method_table.h"

// ceph-osd has exported these functions at least since 15 (Octopus), but the public header does not
// declare them. map_get_vals lists keys and values; map_remove_range and write_zero free space.
extern int cls_cxx_map_get_vals(cls_method_context_t hctx, const std::string& start_after,
                                const std::string& filter_prefix, uint64_t max_to_get,
                                std::map<std::string, ceph::bufferlist>* vals, bool* more);
extern int cls_cxx_map_remove_key(cls_method_context_t hctx, const std::string& key);
extern int cls_cxx_map_remove_range(cls_method_context_t hctx, const std::string& key_begin,
                                    const std::string& key_end);
extern int cls_cxx_write_zero(cls_method_context_t hctx, int offset, int len);

CLS_VER(1, 0)
CLS_NAME(zlog)

namespace {

ceph::bufferlist list_of(std::string_view bytes) {
  ceph::bufferlist list;
  list.append(bytes.data(), static_cast<unsigned>(bytes.size()));
  return list;
}

// Returns a number other than 0, which is new each time that the OSD starts.
uint64_t instance_of_process() {
  static const uint64_t number = [] {
    std::random_device device;
    return std::uniform_int_distribution<uint64_t>(1)(device);
  }();
  return number;
}

// Offsets and lengths are ints in the class API.
bool fits(uint64_t offset, uint64_t length) {
  return offset <= INT_MAX && length <= static_cast<uint64_t>(INT_MAX) - offset;
}

class OsdObject final : public zlog::Object {
 public:
  // `request` is contiguous, and `bytes` are its bytes.
  OsdObject(cls_method_context_t context, const ceph::bufferlist& request, std::string_view bytes)
      : context_(context), request_(request), request_bytes_(bytes) {}

  int create(bool exclusive) override { return changing(cls_cxx_create(context_, exclusive)); }

  int remove() override { return changing(cls_cxx_remove(context_)); }

  int attr_get(const std::string& name, std::string* value) override {
    ceph::bufferlist list;
    const int r = cls_cxx_getxattr(context_, name.c_str(), &list);
    return taken(r, list, value);
  }

  int attr_set(const std::string& name, std::string_view value) override {
    attrs_changed_ = true;
    ceph::bufferlist list = list_of(value);
    return changing(cls_cxx_setxattr(context_, name.c_str(), &list));
  }

  int omap_get(const std::string& key, std::string* value) override {
    ceph::bufferlist list;
    const int r = cls_cxx_map_get_val(context_, key, &list);
    return taken(r, list, value);
  }

  int omap_get_many(const std::vector<std::string>& keys, zlog::Page* out) override {
    out->clear();
    for (const std::string& key : keys) {
      ceph::bufferlist list;
      const int r = cls_cxx_map_get_val(context_, key, &list);
      if (r == 0) out->emplace(key, buffer_of(std::move(list)));
      if (r < 0 && r != -ENOENT) return r;
    }
    return 0;
  }

  int omap_list(const std::string& after, const std::string& prefix, uint64_t count_max,
                zlog::Page* out, bool* more) override {
    out->clear();
    *more = false;
    std::map<std::string, ceph::bufferlist> values;
    const int r = cls_cxx_map_get_vals(context_, after, prefix, count_max, &values, more);
    if (r < 0) return r;
    for (auto& [key, list] : values) out->emplace_hint(out->end(), key, buffer_of(std::move(list)));
    return 0;
  }

  int omap_set(const std::string& key, std::string_view value) override {
    keys_changed_ = true;
    ceph::bufferlist list = list_of(value);
    return changing(cls_cxx_map_set_val(context_, key, &list));
  }

  int omap_remove(const std::string& key) override {
    keys_changed_ = true;
    return changing(cls_cxx_map_remove_key(context_, key));
  }

  int omap_remove_range(const std::string& begin, const std::string& end) override {
    // finish() needs a change of keys, and not every release counts this as one.
    return changing(cls_cxx_map_remove_range(context_, begin, end));
  }

  int read(uint64_t offset, uint64_t length, std::string* data) override {
    data->clear();
    ceph::bufferlist list;
    return taken(stream(offset, length, &list), list, data);
  }

  int answer(const zlog::Buffer& value) override {
    const auto length = static_cast<unsigned>(value.bytes.size());
    if (length < kSharedBytesMin) {
      answered_.append(value.bytes.data(), length);
      return 0;
    }
    const auto* list = static_cast<const ceph::bufferlist*>(value.owner.get());
    ceph::bufferlist part;
    part.substr_of(*list, static_cast<unsigned>(value.bytes.data() - list->front().c_str()),
                   length);
    answered_.claim_append(part);
    return 0;
  }

  int answer_stream(uint64_t offset, uint64_t length, uint64_t* there) override {
    ceph::bufferlist list;
    const int r = stream(offset, length, &list);
    *there = 0;
    if (r < 0) return r;
    *there = list.length();
    if (*there == length) answered_.claim_append(list);
    return 0;
  }

  int write(uint64_t offset, std::string_view data) override {
    if (!fits(offset, data.size())) return -EFBIG;
    ceph::bufferlist list = shared(data);
    return changing(
        cls_cxx_write(context_, static_cast<int>(offset), static_cast<int>(data.size()), &list));
  }

  int zero(uint64_t offset, uint64_t length) override {
    if (!fits(offset, length)) return -EINVAL;
    return changing(
        cls_cxx_write_zero(context_, static_cast<int>(offset), static_cast<int>(length)));
  }

  uint64_t instance() override { return instance_of_process(); }

  bool changed() const { return changed_; }

  // Ends a change, and makes sure that it touches keys. If an OSD missed changes of an object,
  // Ceph's recovery sends it all attributes, but sends keys only if one of these changes touched
  // keys. The OSD could otherwise serve attributes that refer to keys it lacks. Removing a key that
  // does not exist is enough.
  int finish() {
    return attrs_changed_ && !keys_changed_ ? cls_cxx_map_remove_key(context_, kNoKey) : 0;
  }

  // The stored bytes of the reply.
  ceph::bufferlist& answered() { return answered_; }

 private:
  static constexpr const char* kNoKey = "zlog.none";

  // Fewer bytes are copied, since referring to them would cost more.
  static constexpr unsigned kSharedBytesMin = 2048;

  // Reads the bytestream, but never all of it at once. When an OSD reads a whole object that has a
  // checksum, it compares the checksum, and aborts if it differs in a replica that is not the
  // primary.
  int stream(uint64_t offset, uint64_t length, ceph::bufferlist* list) {
    if (!fits(offset, length)) return -EINVAL;
    const uint64_t begin = offset == 0 ? std::min<uint64_t>(length, 1) : 0;
    for (const uint64_t part : {begin, length - begin}) {
      if (part == 0) continue;  // an OSD reads a length of 0 as "to the end"
      ceph::bufferlist piece;
      const int r =
          cls_cxx_read(context_, static_cast<int>(offset), static_cast<int>(part), &piece);
      if (r < 0) return r;
      list->claim_append(piece);
      offset += part;
    }
    return 0;
  }

  // Returns the result of a call that changes the object.
  int changing(int r) {
    changed_ = true;
    return r;
  }

  static zlog::Buffer buffer_of(ceph::bufferlist list) {
    const auto owner = std::make_shared<ceph::bufferlist>(std::move(list));
    return {{owner->c_str(), owner->length()}, owner};
  }

  // Passes on the value that a call has read. `r` is the call's result, which is the number of
  // bytes or a negative errno.
  static int taken(int r, const ceph::bufferlist& list, std::string* value) {
    if (r < 0) return r;
    *value = list.to_str();
    return 0;
  }

  // Like list_of, but does not copy bytes of the request, which exists as long as anything refers
  // to it.
  ceph::bufferlist shared(std::string_view bytes) const {
    const std::less_equal<> not_after;  // unlike <=, defined for all pointers
    const char* const begin = request_bytes_.data();
    const bool inside = not_after(begin, bytes.data()) &&
                        not_after(bytes.data() + bytes.size(), begin + request_bytes_.size());
    if (!inside) return list_of(bytes);
    ceph::bufferlist list;
    list.substr_of(request_, static_cast<unsigned>(bytes.data() - begin),
                   static_cast<unsigned>(bytes.size()));
    return list;
  }

  cls_method_context_t context_;
  const ceph::bufferlist& request_;
  const std::string_view request_bytes_;
  ceph::bufferlist answered_;
  bool changed_ = false;
  bool attrs_changed_ = false;
  bool keys_changed_ = false;
};

int run(const zlog::Method& method, cls_method_context_t context, ceph::bufferlist* in,
        ceph::bufferlist* out) noexcept try {
  if (in->length() > zlog::limits::request_bytes_max) return -EINVAL;
  const std::string_view payload(in->c_str(), in->length());
  OsdObject object(context, *in, payload);
  std::string reply;
  const int code = method.call(object, payload, &reply);
  if (code == -EIO) cls_log(0, "zlog: %s: stored bytes are damaged, or unreadable", method.name);
  if (code == zlog::kStoredTooNew || code == zlog::kRequestTooNew) {
    cls_log(0, "zlog: %s: needs a newer libcls_zlog.so than this OSD has", method.name);
  }
  if (code < 0) return code;
  if (code > 0 && object.changed()) return -EIO;  // a refusal changes nothing
  const size_t reply_bytes = reply.size() + object.answered().length();
  if (object.changed() && reply_bytes > zlog::limits::write_reply_bytes_max) return -EOVERFLOW;
  if (const int r = object.finish(); r < 0) return r;
  out->append(reply.data(), static_cast<unsigned>(reply.size()));
  out->claim_append(object.answered());
  return code;
} catch (const std::bad_alloc&) {
  cls_log(0, "zlog: %s: out of memory", method.name);
  return -ENOMEM;
} catch (...) {
  cls_log(0, "zlog: %s: an exception, which is a bug", method.name);
  return -EIO;
}

// An object class method is a plain function: one for each index of the table of methods.
template <size_t index>
int call(cls_method_context_t context, ceph::bufferlist* in, ceph::bufferlist* out) {
  return run(zlog::methods()[index], context, in, out);
}

template <size_t... index>
void register_methods(cls_handle_t handle, std::index_sequence<index...>) {
  const cls_method_cxx_call_t calls[] = {call<index>...};
  for (size_t i = 0; i < sizeof...(index); i++) {
    const zlog::Method& method = zlog::methods()[i];
    const int flags = ((method.flags & zlog::kRead) != 0 ? CLS_METHOD_RD : 0) |
                      ((method.flags & zlog::kWrite) != 0 ? CLS_METHOD_WR : 0);
    cls_method_handle_t method_handle;
    cls_register_cxx_method(handle, method.name, flags, calls[i], &method_handle);
  }
}

}  // namespace

CLS_INIT(zlog) {
  cls_handle_t handle;
  if (cls_register(zlog::kClassName, &handle) < 0) return;
  register_methods(handle, std::make_index_sequence<zlog::method_count()>());
}
