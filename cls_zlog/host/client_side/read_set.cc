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
int Draft::ask() {
  changed_before_ = changed_before_ || changed();
  return changed_before_ ? -EAGAIN : 0;
}

int Draft::change() {
  if (in_vain()) return -EAGAIN;
  if (!changed()) changes_ = stock_.changes(seen_.version);
  return 0;
}

std::unique_ptr<Changes> Draft::take_changes() {
  // As the class has it (osd/cls_zlog.cc): no attribute is changed without a key.
  if (changed() && exists_ && attrs_changed_ && !keys_changed_) changes_->omap_remove(kNoKey);
  return std::move(changes_);
}

int Draft::exists(bool* exists) {
  *exists = exists_;
  return 0;
}

int Draft::attr_get(const std::string& name, std::string* value) {
  const auto found = attrs_.find(name);
  if (found == attrs_.end()) return -ENODATA;
  *value = found->second;
  return 0;
}

int Draft::omap_get(const std::string& key, std::string* value) {
  if (const int r = ask(); r < 0) return r;
  for (const KeyRead& read : seen_.reads.keys) {
    if (read.key != key) continue;
    if (read.found) *value = read.value;
    return read.found ? 0 : -ENOENT;
  }
  missing_.keys.push_back({key});
  return -EAGAIN;
}

int Draft::omap_list(const std::string& after, const std::string& prefix, uint64_t count_max,
                     Page* out, bool* more) {
  if (const int r = ask(); r < 0) return r;
  for (const ListRead& list : seen_.reads.lists) {
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

int Draft::read(uint64_t offset, uint64_t length, Pieces* pieces) {
  if (const int r = ask(); r < 0 || length == 0) return r;
  for (const StreamRead& read : seen_.reads.stream) {
    if (read.offset != offset || read.length < length) continue;
    pieces->push_back(read.bytes.bytes.substr(0, length));
    return 0;
  }
  missing_.stream.push_back({offset, length});
  add_zeros(length, pieces);
  return 0;
}

int Draft::create() {
  if (const int r = change(); r < 0) return r;
  exists_ = true;
  return 0;
}

int Draft::remove() {
  if (const int r = change(); r < 0) return r;
  changes_->remove();
  exists_ = false;
  return 0;
}

int Draft::attr_set(const std::string& name, std::string_view value) {
  if (const int r = change(); r < 0) return r;
  attrs_changed_ = true;
  attrs_[name] = value;
  changes_->attr_set(name, value);
  return 0;
}

int Draft::omap_set(const std::string& key, std::string_view value) {
  if (const int r = change(); r < 0) return r;
  keys_changed_ = true;
  changes_->omap_set(key, value);
  return 0;
}

int Draft::omap_remove(const std::string& key) {
  if (const int r = change(); r < 0) return r;
  keys_changed_ = true;
  changes_->omap_remove(key);
  return 0;
}

// Not every release takes this for a change of keys.
int Draft::omap_remove_range(const std::string& begin, const std::string& end) {
  if (const int r = change(); r < 0) return r;
  changes_->omap_remove_range(begin, end);
  return 0;
}

int Draft::write(uint64_t offset, std::string_view data) {
  if (const int r = change(); r < 0) return r;
  changes_->write(offset, data);
  return 0;
}

int Draft::zero(uint64_t offset, uint64_t length) {
  if (const int r = change(); r < 0) return r;
  changes_->zero(offset, length);
  return 0;
}

}  // namespace zlog
