#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cls_zlog/host/client_side/object_store.h"
#include "cls_zlog/host/transaction.h"

namespace zlog {

// The parts of an object that were read, all at one version, and the changes that methods make. The
// changes take effect only if the object still has that version.
//
// If a method reads a part that is missing here, it gets EAGAIN (or zeros instead of bytes) and
// continues, so that one run finds as many missing parts as possible. Its result and changes are
// then discarded, and it runs again once the missing parts (take_missing()) have been read.
class ReadSet final : public Backing {
 public:
  // `known` must outlive it.
  explicit ReadSet(const ObjectVersion& known)
      : known_(known), attrs_(known.attrs), exists_(known.version != 0) {}

  // Returns whether the last method lacked something.
  bool incomplete() const override { return changed_before_ || !missing_.empty(); }

  // Returns the reads that the last method still needs. Returns an empty set if an earlier method
  // had already made changes, because reads do not see them.
  Reads take_missing() { return std::exchange(missing_, {}); }

  bool changed() const { return !changes_.empty(); }

  std::vector<Change> take_changes() {
    // As in the class (osd/cls_zlog.cc): no attribute is changed without a key.
    if (exists_ && attrs_changed_ && !keys_changed_) {
      changes_.push_back({Change::Kind::kOmapRemove, "zlog.none"});
    }
    return std::move(changes_);
  }

  // These describe the object after the changes.
  bool exists() const { return exists_; }
  Attrs take_attrs() { return std::move(attrs_); }

  int exists(bool* exists) override {
    *exists = exists_;
    return 0;
  }

  int attr_get(const std::string& name, std::string* value) override {
    const auto found = attrs_.find(name);
    if (found == attrs_.end()) return -ENODATA;
    *value = found->second;
    return 0;
  }

  int omap_get(const std::string& key, Buffer* value) override {
    if (!may_ask()) return -EAGAIN;
    const std::vector<KeyRead>& keys = known_.reads.keys;
    for (size_t i = 0; i < keys.size(); i++) {
      const KeyRead& read = keys[next_key_++ % keys.size()];  // keys are usually read in order
      if (read.key != key) continue;
      value->bytes = read.value;
      return read.found ? 0 : -ENOENT;
    }
    missing_.keys.push_back({key});
    return -EAGAIN;
  }

  int omap_list(const std::string& after, const std::string& prefix, uint64_t count_max, Page* out,
                bool* more) override {
    if (!may_ask()) return -EAGAIN;
    for (const ListRead& list : known_.reads.lists) {
      if (!covers(list, after, prefix)) continue;
      auto at = list.page.upper_bound(after);
      for (; at != list.page.end() && out->size() < count_max; ++at) {
        out->emplace_hint(out->end(), *at);
      }
      *more = list.more || at != list.page.end();
      return 0;
    }
    missing_.lists.push_back({after, prefix, count_max});
    return -EAGAIN;
  }

  int read(uint64_t offset, uint64_t length, Pieces* pieces) override {
    if (!may_ask()) return -EAGAIN;
    for (const StreamRead& read : known_.reads.stream) {
      if (read.offset != offset || read.length < length) continue;
      pieces->push_back(read.bytes.bytes.substr(0, length));
      return 0;
    }
    missing_.stream.push_back({offset, length});
    add_zeros(length, pieces);
    return 0;
  }

  int apply(Change&& change) override {
    if (incomplete()) return -EAGAIN;
    switch (change.kind) {
      case Change::Kind::kCreate:
        exists_ = true;
        break;
      case Change::Kind::kRemove:
        exists_ = false;
        break;
      case Change::Kind::kAttrSet:
        attrs_changed_ = true;
        attrs_[change.key] = change.value;
        break;
      case Change::Kind::kOmapSet:
      case Change::Kind::kOmapRemove:
        keys_changed_ = true;
        break;
      default:  // not every release of Ceph counts the removal of a range as a change of keys
        break;
    }
    changes_.push_back(std::move(change));
    return 0;
  }

 private:
  // Returns whether a listing has the keys after `after`.
  static bool covers(const ListRead& list, const std::string& after, const std::string& prefix) {
    if (list.prefix != prefix || list.after > after) return false;
    return !list.more || (!list.page.empty() && after < list.page.rbegin()->first);
  }

  // After a change nothing more may be read, since the known values do not include the change.
  bool may_ask() {
    changed_before_ = changed_before_ || changed();
    return !changed_before_;
  }

  const ObjectVersion& known_;
  Attrs attrs_;
  bool exists_;
  Reads missing_;
  size_t next_key_ = 0;          // at which a search of the known keys begins
  bool changed_before_ = false;  // a read needs something that an earlier method may have changed
  std::vector<Change> changes_;
  bool attrs_changed_ = false;
  bool keys_changed_ = false;
};

}  // namespace zlog
