#include "cls_zlog/host/memory/memory_host.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cls_zlog/host/exception_barrier.h"
#include "cls_zlog/host/transaction.h"

namespace zlog {
namespace {

using Objects = std::map<std::string, MemoryObject, std::less<>>;

// One object of a MemoryHost, whose lock is held.
class MemoryBacking final : public Backing {
 public:
  MemoryBacking(Objects& objects, std::string_view name)
      : objects_(objects), name_(name), object_(objects.find(name)) {}

  int exists(bool* exists) override {
    *exists = object_ != objects_.end();
    return 0;
  }

  int attr_get(const std::string& name, std::string* value) override {
    return get(object_->second.attrs, name, value, -ENODATA);
  }

  int omap_get(const std::string& key, std::string* value) override {
    return get(object_->second.omap, key, value, -ENOENT);
  }

  int omap_list(const std::string& after, const std::string& prefix, uint64_t count_max, Page* out,
                bool* more) override {
    const std::map<std::string, std::string>& omap = object_->second.omap;
    auto at = after < prefix ? omap.lower_bound(prefix) : omap.upper_bound(after);
    const auto here = [&] {
      return at != omap.end() && at->first.compare(0, prefix.size(), prefix) == 0;
    };
    for (; here() && out->size() < count_max; at++) {
      out->emplace_hint(out->end(), at->first, Buffer{at->second, nullptr});
    }
    *more = here();
    return 0;
  }

  int read(uint64_t offset, uint64_t length, Pieces* pieces) override {
    const std::string_view stream = object_->second.stream;
    if (offset < stream.size()) pieces->push_back(stream.substr(offset, length));
    return 0;
  }

  int create() override {
    object_ = objects_.emplace(name_, MemoryObject()).first;
    return 0;
  }

  int remove() override {
    objects_.erase(object_);
    object_ = objects_.end();
    return 0;
  }

  int attr_set(const std::string& name, std::string_view value) override {
    object_->second.attrs[name] = value;
    return 0;
  }

  int omap_set(const std::string& key, std::string_view value) override {
    object_->second.omap[key] = value;
    return 0;
  }

  int omap_remove(const std::string& key) override {
    object_->second.omap.erase(key);
    return 0;
  }

  int omap_remove_range(const std::string& begin, const std::string& end) override {
    std::map<std::string, std::string>& omap = object_->second.omap;
    if (begin < end) omap.erase(omap.lower_bound(begin), omap.lower_bound(end));
    return 0;
  }

  int write(uint64_t offset, std::string_view data) override {
    std::string& stream = object_->second.stream;
    if (stream.size() < offset + data.size()) stream.resize(offset + data.size());
    stream.replace(offset, data.size(), data);
    return 0;
  }

  int zero(uint64_t offset, uint64_t length) override {
    std::string& stream = object_->second.stream;
    if (offset >= stream.size()) return 0;
    const uint64_t inside = std::min<uint64_t>(length, stream.size() - offset);
    stream.replace(offset, inside, inside, '\0');
    return 0;
  }

 private:
  static int get(const std::map<std::string, std::string>& map, const std::string& key,
                 std::string* value, int missing) {
    const auto at = map.find(key);
    if (at == map.end()) return missing;
    *value = at->second;
    return 0;
  }

  Objects& objects_;
  const std::string name_;
  Objects::iterator object_;
};

}  // namespace

int MemoryHost::execute(std::string_view object, std::string_view method, std::string_view payload,
                        std::string* reply) {
  reply->clear();
  const Method* found = find_method(method);
  if (found == nullptr) return -EOPNOTSUPP;
  return guarded([&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (object.empty()) return -EINVAL;
    MemoryBacking backing(objects_, object);
    return run_method(*found, backing, payload, reply).code;
  });
}

int MemoryHost::list(std::string_view prefix, std::string_view after, Listing* page) {
  return guarded([&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto at = after.empty() ? objects_.lower_bound(prefix) : objects_.upper_bound(after);
    for (; at != objects_.end() && starts_with(at->first, prefix); ++at) {
      if (page->names.size() == Listing::kObjectsMax) {
        page->next = page->names.back();
        break;
      }
      page->names.push_back(at->first);
    }
    return 0;
  });
}

bool MemoryHost::peek(const std::string& object, MemoryObject* out) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = objects_.find(object);
  if (at == objects_.end()) return false;
  *out = at->second;
  return true;
}

void MemoryHost::poke(const std::string& object, MemoryObject content) {
  const std::lock_guard<std::mutex> lock(mutex_);
  objects_[object] = std::move(content);
}

}  // namespace zlog
