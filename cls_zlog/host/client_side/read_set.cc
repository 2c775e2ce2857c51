#include "cls_zlog/host/client_side/read_set.h"

#include <algorithm>
#include <cerrno>

namespace zlog {
namespace {

constexpr const char* kNoKey = "zlog.none";

// Whether a listing that was read tells what comes after `after`.
bool tells(const ListRead& list, const std::string& after, const std::string& prefix) {
  if (list.prefix != prefix || list.after > after) return false;
  return !list.more || (!list.page.empty() && after < list.page.rbegin()->first);
}

void add_zeros(uint64_t length, Pieces* pieces) {
  static constexpr char kZeros[1 << 16] = {};
  for (; length > 0; length -= pieces->back().size()) {
    pieces->emplace_back(kZeros, std::min<uint64_t>(length, sizeof(kZeros)));
  }
}

}  // namespace

void Reads::add(Reads other) {
  std::move(other.keys.begin(), other.keys.end(), std::back_inserter(keys));
  std::move(other.lists.begin(), other.lists.end(), std::back_inserter(lists));
  std::move(other.stream.begin(), other.stream.end(), std::back_inserter(stream));
}

// Nothing that has been changed is read: another method's changes are not there yet.
int ReadSet::ask() {
  changed_before_ = changed_before_ || changed();
  return changed_before_ ? -EAGAIN : 0;
}

std::vector<Change> ReadSet::take_changes() {
  // As the class has it (osd/cls_zlog.cc): no attribute is changed without a key.
  if (exists_ && attrs_changed_ && !keys_changed_) {
    changes_.push_back({Change::Kind::kOmapRemove, kNoKey});
  }
  return std::move(changes_);
}

int ReadSet::exists(bool* exists) {
  *exists = exists_;
  return 0;
}

int ReadSet::attr_get(const std::string& name, std::string* value) {
  const auto found = attrs_.find(name);
  if (found == attrs_.end()) return -ENODATA;
  *value = found->second;
  return 0;
}

int ReadSet::omap_get(const std::string& key, std::string* value) {
  if (const int r = ask(); r < 0) return r;
  for (const KeyRead& read : known_.reads.keys) {
    if (read.key != key) continue;
    if (read.found) *value = read.value;
    return read.found ? 0 : -ENOENT;
  }
  missing_.keys.push_back({key});
  return -EAGAIN;
}

int ReadSet::omap_list(const std::string& after, const std::string& prefix, uint64_t count_max,
                       Page* out, bool* more) {
  if (const int r = ask(); r < 0) return r;
  for (const ListRead& list : known_.reads.lists) {
    if (!tells(list, after, prefix)) continue;
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

int ReadSet::read(uint64_t offset, uint64_t length, Pieces* pieces) {
  if (const int r = ask(); r < 0 || length == 0) return r;
  for (const StreamRead& read : known_.reads.stream) {
    if (read.offset != offset || read.length < length) continue;
    pieces->push_back(read.bytes.bytes.substr(0, length));
    return 0;
  }
  missing_.stream.push_back({offset, length});
  add_zeros(length, pieces);
  return 0;
}

int ReadSet::apply(Change&& change) {
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
    default:  // nor is a range, which not every release takes for a change of keys
      break;
  }
  changes_.push_back(std::move(change));
  return 0;
}

}  // namespace zlog
