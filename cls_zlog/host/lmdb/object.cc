#include "cls_zlog/host/lmdb/object.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "cls_zlog/host/lmdb/call.h"
#include "cls_zlog/host/lmdb/env.h"
#include "cls_zlog/host/lmdb/value.h"
#include "cls_zlog/wire/wire.h"

namespace zlog {
namespace {

// Larger writes become several extents, since LMDB keeps each value in pages that lie side by side,
// which grow scarce as a file ages.
constexpr uint64_t kExtentBytes = 256u << 10;

constexpr std::string_view kNextIdKey = "N";
constexpr uint64_t kFirstId = 1;

// Big-endian, so that keys sort as their numbers do.
void append_sortable(std::string* out, uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8)
    out->push_back(static_cast<char>(number >> shift & 0xff));
}

uint64_t load_sortable(std::string_view bytes) {
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

// A place in the tree. Must be gone before the transaction ends.
class OpenCursor {
 public:
  OpenCursor(MDB_txn* txn, MDB_dbi dbi) : result_(::mdb_cursor_open(txn, dbi, &cursor_)) {}
  ~OpenCursor() {
    if (cursor_ != nullptr) ::mdb_cursor_close(cursor_);
  }
  OpenCursor(const OpenCursor&) = delete;
  OpenCursor& operator=(const OpenCursor&) = delete;

  // Moves to the first key >= `key`, to the next, to the one before. False at the end, or after an
  // error.
  bool seek(const std::string& key) {
    key_ = value_of(key);
    return move(MDB_SET_RANGE);
  }
  bool next() { return move(MDB_NEXT); }
  bool previous() { return move(MDB_PREV); }
  bool last() { return move(MDB_LAST); }
  bool remove() {
    result_ = lmdb_call([&] { return ::mdb_cursor_del(cursor_, 0); });
    return result_ == 0;
  }

  std::string_view key() const { return view_of(key_); }
  std::string_view value() const { return view_of(value_); }

  // 0 when the last move came to the end and nothing worse.
  int error() const { return result_ == MDB_NOTFOUND ? 0 : lmdb_errno(result_); }

 private:
  bool move(MDB_cursor_op operation) {
    if (cursor_ == nullptr) return false;
    result_ = lmdb_call([&] { return ::mdb_cursor_get(cursor_, &key_, &value_, operation); });
    return result_ == 0;
  }

  MDB_cursor* cursor_ = nullptr;
  int result_;
  MDB_val key_{}, value_{};
};

// What is in no extent.
void put_zeros(uint64_t count, Pieces* pieces) {
  static constexpr std::array<char, 64u << 10> kZeros{};
  for (; count > kZeros.size(); count -= kZeros.size()) {
    pieces->emplace_back(kZeros.data(), kZeros.size());
  }
  pieces->emplace_back(kZeros.data(), count);
}

std::string record_key(std::string_view name) { return "n" + std::string(name); }

}  // namespace

int list_objects(MDB_txn* txn, MDB_dbi dbi, std::string_view prefix, std::string_view after,
                 Listing* page) {
  const std::string wanted = record_key(prefix);
  const std::string passed = record_key(after);
  OpenCursor cursor(txn, dbi);
  bool found = cursor.seek(std::max(wanted, passed));
  if (found && !after.empty() && cursor.key() == passed) found = cursor.next();
  for (; found && starts_with(cursor.key(), wanted); found = cursor.next()) {
    if (page->names.size() == Listing::kObjectsMax) {
      page->next = page->names.back();
      break;
    }
    page->names.emplace_back(cursor.key().substr(1));
  }
  return cursor.error();
}

LmdbObject::LmdbObject(MDB_txn* txn, MDB_dbi dbi, int format, std::string_view name, Redo* changes)
    : txn_(txn),
      dbi_(dbi),
      attr_(format == 1 ? Kind::kAttrOfOld : Kind::kAttr),
      record_key_(record_key(name)),
      changes_(changes) {}

int LmdbObject::exists(bool* exists) {
  if (!loaded_) {
    std::string record;
    const int error = get(record_key_, &record);
    if (error != 0 && error != -ENOENT) return error;
    exists_ = error == 0;
    if (exists_) {
      wire::Reader reader(record);
      id_ = reader.u64();
      size_ = reader.u64();
      if (!reader.done()) return -EIO;
    }
    loaded_ = true;
  }
  *exists = exists_;
  return 0;
}

std::string LmdbObject::key_of(Kind kind, std::string_view name) const {
  std::string key = "o";
  append_sortable(&key, id_);
  key.push_back(static_cast<char>(kind));
  key.append(name);
  return key;
}

std::string LmdbObject::extent_key(uint64_t offset) const {
  std::string key = key_of(Kind::kExtent, {});
  append_sortable(&key, offset);
  return key;
}

int LmdbObject::get(const std::string& key, std::string* value) const {
  return get_value(txn_, dbi_, key, value);
}

int LmdbObject::put(const std::string& key, std::string_view value) {
  if (changes_ != nullptr) changes_->put(key, value);
  return put_value(txn_, dbi_, key, value);
}

int LmdbObject::remove_key(const std::string& key) {
  if (changes_ != nullptr) changes_->remove(key);
  return remove_value(txn_, dbi_, key);
}

int LmdbObject::remove_range(const std::string& begin, const std::string& end) {
  OpenCursor cursor(txn_, dbi_);
  // After a removal the cursor stands on what followed, but has to be asked for it.
  for (bool found = cursor.seek(begin); found && cursor.key() < end; found = cursor.seek(begin)) {
    if (changes_ != nullptr) changes_->remove(cursor.key());
    if (!cursor.remove()) break;
  }
  return cursor.error();
}

int LmdbObject::attr_get(const std::string& name, std::string* value) {
  const int error = get(key_of(attr_, name), value);
  return error == -ENOENT ? -ENODATA : error;
}

int LmdbObject::omap_get(const std::string& key, std::string* value) {
  return get(key_of(Kind::kOmap, key), value);
}

int LmdbObject::omap_list(const std::string& after, const std::string& prefix, uint64_t count_max,
                          Page* out, bool* more) {
  const std::string base = key_of(Kind::kOmap, {});
  const std::string wanted = base + prefix;
  const std::string passed = base + after;
  *more = false;
  OpenCursor cursor(txn_, dbi_);
  bool found = cursor.seek(std::max(wanted, passed));
  if (found && cursor.key() == passed) found = cursor.next();
  for (; found && starts_with(cursor.key(), wanted); found = cursor.next()) {
    if (out->size() == count_max) {
      *more = true;
      break;
    }
    out->emplace_hint(out->end(), cursor.key().substr(base.size()),
                      Buffer{cursor.value(), nullptr});
  }
  return cursor.error();
}

int LmdbObject::apply(Change&& change) {
  switch (change.kind) {
    case Change::Kind::kCreate:
      return create();
    case Change::Kind::kRemove:
      return remove();
    case Change::Kind::kAttrSet:
      return put(key_of(attr_, change.key), change.value);
    case Change::Kind::kOmapSet:
      return put(key_of(Kind::kOmap, change.key), change.value);
    case Change::Kind::kOmapRemove:
      return omap_remove(change.key);
    case Change::Kind::kOmapRemoveRange:
      return remove_range(key_of(Kind::kOmap, change.key), key_of(Kind::kOmap, change.value));
    case Change::Kind::kWrite:
      return write(change.offset, change.data);
    case Change::Kind::kZero:
      return zero(change.offset, change.length);
  }
  return -EIO;
}

int LmdbObject::put_record() {
  std::string record;
  wire::Writer(&record).u64(id_).u64(size_);
  return put(record_key_, record);
}

int LmdbObject::create() {
  const std::string next_id_key(kNextIdKey);
  std::string next;
  const int error = get(next_id_key, &next);
  if (error != 0 && error != -ENOENT) return error;
  wire::Reader reader(next);
  id_ = error == 0 ? reader.u64() : kFirstId;
  if (error == 0 && !reader.done()) return -EIO;
  next.clear();
  wire::Writer(&next).u64(id_ + 1);
  if (const int failed = put(next_id_key, next)) return failed;
  exists_ = true;
  size_ = 0;
  return put_record();
}

int LmdbObject::remove() {
  std::string begin = "o", end = "o";
  append_sortable(&begin, id_);
  append_sortable(&end, id_ + 1);
  if (const int error = remove_range(begin, end)) return error;
  exists_ = false;
  return remove_key(record_key_);
}

int LmdbObject::omap_remove(const std::string& key) {
  const int error = remove_key(key_of(Kind::kOmap, key));
  return error == -ENOENT ? 0 : error;
}

template <typename Visit>
int LmdbObject::each_extent(uint64_t begin, uint64_t end, Visit&& visit) const {
  const std::string prefix = key_of(Kind::kExtent, {});
  const auto offset_of = [&](const OpenCursor& cursor) {
    return load_sortable(cursor.key().substr(prefix.size()));
  };
  OpenCursor cursor(txn_, dbi_);
  // The extent before `begin` may reach into the range. Whatever else lies there is not an extent.
  bool found = cursor.seek(extent_key(begin));
  if (const int error = cursor.error()) return error;
  if (found ? cursor.previous() : cursor.last()) {
    const bool overlaps =
        starts_with(cursor.key(), prefix) && offset_of(cursor) + cursor.value().size() > begin;
    found = overlaps || cursor.next();
  } else {
    found = cursor.seek(extent_key(begin));
  }
  for (; found && starts_with(cursor.key(), prefix) && offset_of(cursor) < end;
       found = cursor.next()) {
    if (const int error = visit(offset_of(cursor), cursor.value())) return error;
  }
  return cursor.error();
}

int LmdbObject::read(uint64_t offset, uint64_t length, Pieces* pieces) {
  if (offset >= size_) return 0;
  const uint64_t end = offset + std::min(length, size_ - offset);
  uint64_t at = offset;
  const int error = each_extent(offset, end, [&](uint64_t start, std::string_view bytes) {
    if (start > at) put_zeros(start - at, pieces);
    at = std::max(start, at);
    pieces->push_back(bytes.substr(at - start, end - at));
    at += pieces->back().size();
    return 0;
  });
  if (error == 0) put_zeros(end - at, pieces);
  return error;
}

int LmdbObject::write(uint64_t offset, std::string_view data) {
  if (const int error = punch(offset, offset + data.size())) return error;
  if (const int error = put_extents(offset, data)) return error;
  if (offset + data.size() <= size_) return 0;
  size_ = offset + data.size();
  return put_record();
}

int LmdbObject::zero(uint64_t offset, uint64_t length) {
  if (offset >= size_) return 0;
  return punch(offset, offset + std::min(length, size_ - offset));
}

int LmdbObject::put_extents(uint64_t offset, std::string_view data) {
  while (!data.empty()) {
    const std::string_view part = data.substr(0, kExtentBytes);
    if (const int error = put(extent_key(offset), part)) return error;
    offset += part.size();
    data.remove_prefix(part.size());
  }
  return 0;
}

// Takes [begin, end) out of all extents: those that reach over an edge keep what lies outside.
int LmdbObject::punch(uint64_t begin, uint64_t end) {
  std::vector<uint64_t> gone;
  std::vector<std::pair<uint64_t, std::string>> kept;
  const int error = each_extent(begin, end, [&](uint64_t start, std::string_view bytes) {
    gone.push_back(start);
    if (start < begin) kept.emplace_back(start, bytes.substr(0, begin - start));
    if (start + bytes.size() > end) kept.emplace_back(end, bytes.substr(end - start));
    return 0;
  });
  if (error != 0) return error;
  for (const uint64_t start : gone) {
    if (const int failed = remove_key(extent_key(start))) return failed;
  }
  for (const auto& [start, bytes] : kept) {
    if (const int failed = put_extents(start, bytes)) return failed;
  }
  return 0;
}

}  // namespace zlog
