#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>

#include "cls_zlog/host/client_side/object_store.h"

namespace zlog {

// Cached versions of objects: their numbers and attributes. The least recently used are forgotten.
class VersionCache {
 public:
  // False when nothing is known of it.
  bool recall(const std::string& object, ObjectVersion* out) {
    const auto found = places_.find(object);
    if (found == places_.end()) return false;
    order_.splice(order_.begin(), order_, found->second);
    out->version = found->second->version;
    out->attrs = found->second->attrs;
    return true;
  }

  void note(const std::string& object, uint64_t version, const Attrs& attrs) {
    const auto found = places_.find(object);
    if (found != places_.end()) {
      if (version < found->second->version) return;  // a late reply
      forget(object);
    }
    order_.push_front({object, version, attrs});
    places_[object] = order_.begin();
    if (places_.size() > kObjectsMax) forget(std::string(order_.back().object));
  }

  void forget(const std::string& object) {
    const auto found = places_.find(object);
    if (found == places_.end()) return;
    order_.erase(found->second);
    places_.erase(found);
  }

 private:
  static constexpr size_t kObjectsMax = 8192;

  struct Remembered {
    std::string object;
    uint64_t version;
    Attrs attrs;
  };
  std::list<Remembered> order_;  // the last used first
  std::unordered_map<std::string, std::list<Remembered>::iterator> places_;
};

}  // namespace zlog
