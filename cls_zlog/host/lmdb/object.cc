#include "cls_zlog/host/lmdb/object.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "cls_zlog/host/lmdb/call.h"
#include "cls_zlog/wire/wire.h"

namespace zlog {
namespace {

// Larger writes are split into several extents. LMDB keeps each value in consecutive pages, which
// become scarce as a file ages.
constexpr uint64_t kExtentBytes = 256u << 10;

constexpr std::string_view kNextIdKey = "N";
constexpr uint64_t kFirstId = 1;

// Big-endian, so that keys sort by number.
void append_sortable(std::string* out, uint64_t number) {
  for (int shift = 56; shift >= 0; shift -= 8)
    out->push_back(static_cast<char>(number >> shift & 0xff));
}

uint64_t load_sortable(std::string_view bytes) {
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

std::string record_key(std::string_view name) { return "n" + std::string(name); }

// Calls `visit(cursor)` for the keys that begin with `prefix` and are above `after`, until it
// returns false.
template <typename Visit>
int each_key(MDB_txn* txn, const std::string& prefix, const std::string& after,
             const Visit& visit) {
  Cursor cursor(txn);
  bool found = cursor.seek(std::max(prefix, after));
  if (found && cursor.key() == after) found = cursor.next();
  while (found && starts_with(cursor.key(), prefix) && visit(cursor)) found = cursor.next();
  return cursor.error();
}

// One object inside a transaction.
class LmdbObject final : public Backing {
 public:
  LmdbObject(MDB_txn* txn, int format, std::string_view name, Redo* changes)
      : txn_(txn),
        attr_(format == 1 ? Kind::kAttrOfOld : Kind::kAttr),
        record_key_(record_key(name)),
        changes_(changes) {}

  // Loads the object's record. run_method() calls it first.
  int exists(bool* exists) override {
    std::string record;
    const int error = get_value(txn_, record_key_, &record);
    *exists = error == 0;
    if (error != 0) return error == -ENOENT ? 0 : error;
    wire::Reader reader(record);
    id_ = reader.u64();
    size_ = reader.u64();
    return reader.done() ? 0 : -EIO;
  }

  int attr_get(const std::string& name, std::string* value) override {
    const int error = get_value(txn_, key_of(attr_, name), value);
    return error == -ENOENT ? -ENODATA : error;
  }

  int omap_get(const std::string& key, Buffer* value) override {
    return get_value(txn_, key_of(Kind::kOmap, key), &value->bytes);
  }

  int omap_list(const std::string& after, const std::string& prefix, uint64_t count_max, Page* out,
                bool* more) override {
    const std::string base = key_of(Kind::kOmap, {});
    *more = false;
    return each_key(txn_, base + prefix, base + after, [&](const Cursor& at) {
      *more = out->size() == count_max;
      if (*more) return false;
      out->emplace_hint(out->end(), at.key().substr(base.size()), Buffer{at.value(), nullptr});
      return true;
    });
  }

  int read(uint64_t offset, uint64_t length, Pieces* pieces) override {
    if (offset >= size_) return 0;
    const uint64_t end = offset + std::min(length, size_ - offset);
    uint64_t at = offset;
    const int error = each_extent(offset, end, [&](uint64_t start, std::string_view bytes) {
      if (start > at) add_zeros(start - at, pieces);
      at = std::max(start, at);
      pieces->push_back(bytes.substr(at - start, end - at));
      at += pieces->back().size();
    });
    if (error == 0) add_zeros(end - at, pieces);
    return error;
  }

  int apply(Change&& change) override {
    switch (change.kind) {
      case Change::Kind::kCreate:
        return create();
      case Change::Kind::kRemove:
        return remove();
      case Change::Kind::kAttrSet:
        return put(key_of(attr_, change.key), change.value);
      case Change::Kind::kOmapSet:
        return put(key_of(Kind::kOmap, change.key), change.value);
      case Change::Kind::kOmapRemove: {
        const int error = remove_key(key_of(Kind::kOmap, change.key));
        return error == -ENOENT ? 0 : error;
      }
      case Change::Kind::kOmapRemoveRange:
        return remove_range(key_of(Kind::kOmap, change.key), key_of(Kind::kOmap, change.value));
      case Change::Kind::kWrite:
        return write(change.offset, change.data);
      case Change::Kind::kZero:
        if (change.offset >= size_) return 0;
        return punch(change.offset, change.offset + std::min(change.length, size_ - change.offset));
    }
    return -EIO;
  }

 private:
  enum class Kind : char { kAttrOfOld = 'a', kOmap = 'k', kAttr = 'm', kExtent = 'x' };

  std::string key_of(Kind kind, std::string_view name) const {
    std::string key = "o";
    append_sortable(&key, id_);
    key.push_back(static_cast<char>(kind));
    key.append(name);
    return key;
  }

  std::string extent_key(uint64_t offset) const {
    std::string key = key_of(Kind::kExtent, {});
    append_sortable(&key, offset);
    return key;
  }

  int put(std::string_view key, std::string_view value) {
    if (changes_ != nullptr) changes_->put(key, value);
    return put_value(txn_, key, value);
  }

  int remove_key(const std::string& key) {
    if (changes_ != nullptr) changes_->remove(key);
    return remove_value(txn_, key);
  }

  int remove_range(const std::string& begin, const std::string& end) {
    Cursor cursor(txn_);
    // A removal leaves the cursor at the next key, which must be looked up again.
    for (bool found = cursor.seek(begin); found && cursor.key() < end; found = cursor.seek(begin)) {
      if (changes_ != nullptr) changes_->remove(cursor.key());
      if (!cursor.remove()) break;
    }
    return cursor.error();
  }

  int put_record() {
    std::string record;
    wire::Writer(&record).u64(id_).u64(size_);
    return put(record_key_, record);
  }

  int create() {
    std::string next;
    const int error = get_value(txn_, kNextIdKey, &next);
    if (error != 0 && error != -ENOENT) return error;
    wire::Reader reader(next);
    id_ = error == 0 ? reader.u64() : kFirstId;
    if (error == 0 && !reader.done()) return -EIO;
    next.clear();
    wire::Writer(&next).u64(id_ + 1);
    if (const int failed = put(kNextIdKey, next)) return failed;
    size_ = 0;
    return put_record();
  }

  int remove() {
    std::string begin = "o", end = "o";
    append_sortable(&begin, id_);
    append_sortable(&end, id_ + 1);
    if (const int error = remove_range(begin, end)) return error;
    return remove_key(record_key_);
  }

  // Calls `visit(offset, bytes)` for every extent that overlaps [begin, end), in ascending order.
  // `visit` must not change the tree.
  template <typename Visit>
  int each_extent(uint64_t begin, uint64_t end, Visit&& visit) const {
    const std::string prefix = key_of(Kind::kExtent, {});
    const auto offset_of = [&](const Cursor& cursor) {
      return load_sortable(cursor.key().substr(prefix.size()));
    };
    Cursor cursor(txn_);
    // The extent before `begin` may reach into the range. Another key there is not an extent.
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
      visit(offset_of(cursor), cursor.value());
    }
    return cursor.error();
  }

  int write(uint64_t offset, std::string_view data) {
    if (const int error = punch(offset, offset + data.size())) return error;
    if (const int error = put_extents(offset, data)) return error;
    if (offset + data.size() <= size_) return 0;
    size_ = offset + data.size();
    return put_record();
  }

  int put_extents(uint64_t offset, std::string_view data) {
    while (!data.empty()) {
      const std::string_view part = data.substr(0, kExtentBytes);
      if (const int error = put(extent_key(offset), part)) return error;
      offset += part.size();
      data.remove_prefix(part.size());
    }
    return 0;
  }

  // Removes [begin, end) from all extents. Extents that are partly outside keep those bytes.
  int punch(uint64_t begin, uint64_t end) {
    std::vector<uint64_t> gone;
    std::vector<std::pair<uint64_t, std::string>> kept;
    const int error = each_extent(begin, end, [&](uint64_t start, std::string_view bytes) {
      gone.push_back(start);
      if (start < begin) kept.emplace_back(start, bytes.substr(0, begin - start));
      if (start + bytes.size() > end) kept.emplace_back(end, bytes.substr(end - start));
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

  MDB_txn* const txn_;
  const Kind attr_;
  const std::string record_key_;
  Redo* const changes_;
  uint64_t id_ = 0;
  uint64_t size_ = 0;  // bytes
};

}  // namespace

int list_objects(MDB_txn* txn, std::string_view prefix, std::string_view after, Listing* page) {
  return each_key(txn, record_key(prefix), record_key(after),
                  [&](const Cursor& at) { return page->add(at.key().substr(1)); });
}

Outcome run_in_transaction(MDB_txn* txn, int format, Redo* changes, std::string_view object,
                           const Method& method, std::string_view payload, std::string* reply) {
  LmdbObject backing(txn, format, object, changes);
  return run_method(method, backing, payload, reply);
}

}  // namespace zlog
