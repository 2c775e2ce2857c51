#include "cls_zlog/host/transaction.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "cls_zlog/base/limits.h"

namespace zlog {
namespace {

// What an OSD returns from one listing, whatever was asked (osd_max_omap_entries_per_request).
constexpr uint64_t kListingMax = 1024;

size_t bytes_in(const Pieces& pieces) {
  size_t bytes = 0;
  for (const std::string_view piece : pieces) bytes += piece.size();
  return bytes;
}

}  // namespace

BufferedObject::BufferedObject(Backing& backing, int flags, bool exists)
    : backing_(backing), flags_(flags), exists_(exists), exists_after_(exists) {}

int BufferedObject::may_read() const { return (flags_ & kRead) != 0 ? 0 : -EIO; }

int BufferedObject::may_change() const { return (flags_ & kWrite) != 0 ? 0 : -EIO; }

// A change to a missing object makes it.
void BufferedObject::ensure_created() {
  if (!exists_after_) changes_.push_back({Change::Kind::kCreate});
  exists_after_ = true;
}

int BufferedObject::create(bool exclusive) {
  if (const int r = may_change(); r < 0) return r;
  if (exists_after_ && exclusive) return -EEXIST;
  ensure_created();
  return 0;
}

int BufferedObject::remove() {
  if (const int r = may_change(); r < 0) return r;
  if (!exists_after_) return -ENOENT;
  changes_.push_back({Change::Kind::kRemove});
  exists_after_ = false;
  return 0;
}

int BufferedObject::attr_get(const std::string& name, std::string* value) {
  if (const int r = may_read(); r < 0) return r;
  return exists_ ? backing_.attr_get(name, value) : -ENODATA;
}

int BufferedObject::attr_set(const std::string& name, std::string_view value) {
  if (const int r = may_change(); r < 0) return r;
  ensure_created();
  changes_.push_back({Change::Kind::kAttrSet, name, std::string(value)});
  return 0;
}

int BufferedObject::omap_get(const std::string& key, std::string* value) {
  if (const int r = may_read(); r < 0) return r;
  return exists_ ? backing_.omap_get(key, value) : -ENOENT;
}

int BufferedObject::omap_list(const std::string& after, const std::string& prefix,
                              uint64_t count_max, Page* out, bool* more) {
  if (const int r = may_read(); r < 0) return r;
  out->clear();
  *more = false;
  if (!exists_ || count_max == 0) return 0;
  return backing_.omap_list(after, prefix, std::min(count_max, kListingMax), out, more);
}

int BufferedObject::omap_set(const std::string& key, std::string_view value) {
  if (const int r = may_change(); r < 0) return r;
  ensure_created();
  changes_.push_back({Change::Kind::kOmapSet, key, std::string(value)});
  return 0;
}

int BufferedObject::omap_remove(const std::string& key) {
  if (const int r = may_change(); r < 0) return r;
  if (!exists_after_) return -ENOENT;
  changes_.push_back({Change::Kind::kOmapRemove, key});
  return 0;
}

int BufferedObject::omap_remove_range(const std::string& begin, const std::string& end) {
  if (const int r = may_change(); r < 0) return r;
  if (!exists_after_) return -ENOENT;
  changes_.push_back({Change::Kind::kOmapRemoveRange, begin, end});
  return 0;
}

int BufferedObject::read(uint64_t offset, uint64_t length, std::string* data) {
  if (const int r = may_read(); r < 0) return r;
  if (!exists_) return -ENOENT;
  data->clear();
  Pieces pieces;
  if (const int r = backing_.read(offset, length, &pieces); r < 0) return r;
  data->reserve(bytes_in(pieces));
  for (const std::string_view piece : pieces) data->append(piece);
  return 0;
}

int BufferedObject::answer(const Buffer& value) {
  answered_.push_back(value.bytes);
  return 0;
}

int BufferedObject::answer_stream(uint64_t offset, uint64_t length, uint64_t* there) {
  *there = 0;
  if (const int r = may_read(); r < 0) return r;
  if (!exists_) return -ENOENT;
  if (length == 0) return 0;
  Pieces pieces;
  if (const int r = backing_.read(offset, length, &pieces); r < 0) return r;
  *there = bytes_in(pieces);
  if (*there == length) answered_.insert(answered_.end(), pieces.begin(), pieces.end());
  return 0;
}

int BufferedObject::write(uint64_t offset, std::string_view data) {
  if (const int r = may_change(); r < 0) return r;
  ensure_created();
  if (!data.empty()) changes_.push_back({Change::Kind::kWrite, {}, {}, offset, 0, data});
  return 0;
}

int BufferedObject::zero(uint64_t offset, uint64_t length) {
  if (const int r = may_change(); r < 0) return r;
  if (exists_after_ && length > 0)
    changes_.push_back({Change::Kind::kZero, {}, {}, offset, length});
  return 0;
}

int BufferedObject::commit() {
  for (Change& change : changes_) {
    if (const int r = backing_.apply(std::move(change)); r < 0) return r;
  }
  changes_.clear();
  return 0;
}

namespace {

// Runs the method and applies what it buffered; `applying` says how far that got if it does not
// return.
int run_and_apply(const Method& method, Backing& backing, std::string_view payload,
                  std::string* reply, bool* applying) {
  const bool writes = (method.flags & kWrite) != 0;
  bool exists = false;
  if (const int r = backing.exists(&exists); r < 0) return r;
  if (!exists && !writes) return -ENOENT;
  BufferedObject object(backing, method.flags, exists);
  const int code = method.call(object, payload, reply);
  if (code < 0) return code;
  if (code > 0 && object.changed()) return -EIO;  // a refusal changes nothing
  const size_t reply_bytes = reply->size() + bytes_in(object.answered());
  if (writes && reply_bytes > limits::write_reply_bytes_max) return -EOVERFLOW;
  reply->reserve(reply_bytes);
  for (const std::string_view piece : object.answered()) reply->append(piece);
  *applying = object.changed();
  if (const int r = object.commit(); r < 0) return r;
  *applying = false;
  return code;
}

}  // namespace

Outcome run_method(const Method& method, Backing& backing, std::string_view payload,
                   std::string* reply) {
  Outcome outcome;
  reply->clear();
  try {
    outcome.code = run_and_apply(method, backing, payload, reply, &outcome.broken);
  } catch (const std::bad_alloc&) {
    outcome.code = -ENOMEM;
  } catch (...) {
    outcome.code = -EIO;
  }
  if (outcome.code < 0) reply->clear();
  return outcome;
}

}  // namespace zlog
