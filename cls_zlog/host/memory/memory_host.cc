#include "cls_zlog/host/memory/memory_host.h"

#include <algorithm>
#include <cerrno>

#include "cls_zlog/host/exception_barrier.h"
#include "cls_zlog/host/listing.h"
#include "cls_zlog/host/transaction.h"
#include "cls_zlog/methods.h"

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

  int omap_get(const std::string& key, Buffer* value) override {
    return get(object_->second.omap, key, &value->bytes, -ENOENT);
  }

  int omap_list(const std::string& after, const std::string& prefix, uint64_t count_max, Page* out,
                bool* more) override {
    const std::map<std::string, std::string>& omap = object_->second.omap;
    auto at = after < prefix ? omap.lower_bound(prefix) : omap.upper_bound(after);
    const auto here = [&] { return at != omap.end() && starts_with(at->first, prefix); };
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

  int apply(Change&& change) override {
    MemoryObject* const object = object_ == objects_.end() ? nullptr : &object_->second;
    switch (change.kind) {
      case Change::Kind::kCreate:
        object_ = objects_.emplace(name_, MemoryObject()).first;
        break;
      case Change::Kind::kRemove:
        objects_.erase(object_);
        object_ = objects_.end();
        break;
      case Change::Kind::kAttrSet:
        object->attrs[change.key] = std::move(change.value);
        break;
      case Change::Kind::kOmapSet:
        object->omap[change.key] = std::move(change.value);
        break;
      case Change::Kind::kOmapRemove:
        object->omap.erase(change.key);
        break;
      case Change::Kind::kOmapRemoveRange:
        if (change.key >= change.value) break;
        object->omap.erase(object->omap.lower_bound(change.key),
                           object->omap.lower_bound(change.value));
        break;
      case Change::Kind::kWrite:
        if (object->stream.size() < change.offset) object->stream.resize(change.offset);
        object->stream.replace(change.offset, change.data.size(), change.data);
        break;
      case Change::Kind::kZero:
        if (change.offset >= object->stream.size()) break;
        change.length = std::min(change.length, object->stream.size() - change.offset);
        object->stream.replace(change.offset, change.length, change.length, '\0');
        break;
    }
    return 0;
  }

 private:
  template <typename T>
  static int get(const std::map<std::string, std::string>& map, const std::string& key, T* value,
                 int missing) {
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
  return exception_barrier([&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (object.empty()) return -EINVAL;
    MemoryBacking backing(objects_, object);
    return run_method(*found, backing, payload, reply).code;
  });
}

Ticket MemoryHost::submit(Submission submission) {
  std::string reply;
  const int code =
      execute(submission.object, submission.method, submission.payload->bytes(), &reply);
  submission.done(code, Buffer::of(std::move(reply)));
  return kNoTicket;
}

void MemoryHost::list(std::string_view prefix, std::string_view after, Done done) {
  Listing page;
  const int error = exception_barrier([&] {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto at = after.empty() ? objects_.lower_bound(prefix) : objects_.upper_bound(after);
    while (at != objects_.end() && starts_with(at->first, prefix) && page.add(at->first)) ++at;
    return 0;
  });
  page.answer(error, done);
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
