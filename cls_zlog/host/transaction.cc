#include "cls_zlog/host/transaction.h"

#include <cerrno>
#include <utility>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/host/exception_barrier.h"

namespace zlog {
namespace {

size_t bytes_in(const Pieces& pieces) {
  size_t bytes = 0;
  for (const std::string_view piece : pieces) bytes += piece.size();
  return bytes;
}

void append(const Pieces& pieces, std::string* out) {
  out->reserve(out->size() + bytes_in(pieces));
  for (const std::string_view piece : pieces) out->append(piece);
}

// Reads from a Backing and buffers changes until commit(), as an OSD does while a method runs.
// Returns the same errors as an OSD of Ceph 16.2.
class BufferedObject final : public Object {
 public:
  BufferedObject(Backing& backing, int flags, bool exists)
      : backing_(backing), flags_(flags), exists_(exists), exists_after_(exists) {}

  int create(bool exclusive) override {
    if (!may_change()) return -EIO;
    if (exists_after_) return exclusive ? -EEXIST : 0;
    ensure_created();
    return 0;
  }

  int remove() override {
    if (const int r = change_existing({Change::Kind::kRemove}); r < 0) return r;
    exists_after_ = false;
    return 0;
  }

  int attr_get(const std::string& name, std::string* value) override {
    if (!may_read()) return -EIO;
    return exists_ ? backing_.attr_get(name, value) : -ENODATA;
  }

  int attr_set(const std::string& name, std::string_view value) override {
    return change({Change::Kind::kAttrSet, name, std::string(value)});
  }

  int omap_get(const std::string& key, std::string* value) override {
    if (!may_read()) return -EIO;
    Buffer found;
    const int r = exists_ ? backing_.omap_get(key, &found) : -ENOENT;
    if (r == 0) value->assign(found.bytes);
    return r;
  }

  // Lets the backing learn of all keys, even if it does not have some of the values yet. But if it
  // lacks other data, the method may not need these keys.
  int omap_get_many(const std::vector<std::string>& keys, Page* out) override {
    if (!may_read()) return -EIO;
    if (backing_.incomplete()) return -EAGAIN;
    out->clear();
    int result = 0;
    for (const std::string& key : keys) {
      Buffer value;
      const int r = exists_ ? backing_.omap_get(key, &value) : -ENOENT;
      if (r == 0) out->emplace(key, value);
      if (r < 0 && r != -ENOENT) result = r;
    }
    return result;
  }

  int omap_list(const std::string& after, const std::string& prefix, uint64_t count_max, Page* out,
                bool* more) override {
    if (!may_read()) return -EIO;
    out->clear();
    *more = false;
    if (!exists_ || count_max == 0) return 0;
    return backing_.omap_list(after, prefix, std::min(count_max, kListingMax), out, more);
  }

  int omap_set(const std::string& key, std::string_view value) override {
    return change({Change::Kind::kOmapSet, key, std::string(value)});
  }

  int omap_remove(const std::string& key) override {
    return change_existing({Change::Kind::kOmapRemove, key});
  }

  int omap_remove_range(const std::string& begin, const std::string& end) override {
    return change_existing({Change::Kind::kOmapRemoveRange, begin, end});
  }

  int read(uint64_t offset, uint64_t length, std::string* data) override {
    Pieces pieces;
    data->clear();
    if (const int r = pieces_of(offset, length, &pieces); r < 0) return r;
    append(pieces, data);
    return 0;
  }

  int answer(const Buffer& value) override {
    answered_.push_back(value.bytes);
    return 0;
  }

  int answer_stream(uint64_t offset, uint64_t length, uint64_t* there) override {
    *there = 0;
    Pieces pieces;
    const int r = pieces_of(offset, length, &pieces);
    if (r < 0 || length == 0) return r;
    *there = bytes_in(pieces);
    if (*there == length) answered_.insert(answered_.end(), pieces.begin(), pieces.end());
    return 0;
  }

  int write(uint64_t offset, std::string_view data) override {
    if (data.empty()) return create(false);
    return change({Change::Kind::kWrite, {}, {}, offset, 0, data});
  }

  int zero(uint64_t offset, uint64_t length) override {
    if (may_change() && (!exists_after_ || length == 0)) return 0;
    return change_existing({Change::Kind::kZero, {}, {}, offset, length});
  }

  // Returns the pieces that answer() and answer_stream() added, in order. They are valid until the
  // object changes.
  const Pieces& answered() const { return answered_; }

  bool changed() const { return !changes_.empty(); }

  // Applies the changes in the order in which they were made. Stops at the first one that fails.
  int commit() {
    for (Change& change : changes_) {
      if (const int r = backing_.apply(std::move(change)); r < 0) return r;
    }
    return 0;
  }

 private:
  bool may_read() const { return (flags_ & kRead) != 0; }
  bool may_change() const { return (flags_ & kWrite) != 0; }

  void ensure_created() {
    if (!exists_after_) changes_.push_back({Change::Kind::kCreate});
    exists_after_ = true;
  }

  // Adds a change, and creates a missing object first.
  int change(Change change) {
    if (!may_change()) return -EIO;
    ensure_created();
    changes_.push_back(std::move(change));
    return 0;
  }

  int change_existing(Change change) {
    if (!may_change()) return -EIO;
    if (!exists_after_) return -ENOENT;
    changes_.push_back(std::move(change));
    return 0;
  }

  int pieces_of(uint64_t offset, uint64_t length, Pieces* pieces) {
    if (!may_read()) return -EIO;
    if (!exists_) return -ENOENT;
    return length == 0 ? 0 : backing_.read(offset, length, pieces);
  }

  Backing& backing_;
  const int flags_;
  const bool exists_;  // before the method
  bool exists_after_;  // once the buffered changes are applied
  std::vector<Change> changes_;
  Pieces answered_;
};

}  // namespace

Outcome run_method(const Method& method, Backing& backing, std::string_view payload,
                   std::string* reply) {
  Outcome outcome;
  reply->clear();
  outcome.code = exception_barrier([&] {
    const bool writes = (method.flags & kWrite) != 0;
    bool exists = false;
    if (const int r = backing.exists(&exists); r < 0) return r;
    if (!exists && !writes) return -ENOENT;
    BufferedObject object(backing, method.flags, exists);
    const int code = method.call(object, payload, reply);
    if (code < 0) return code;
    if (code > 0 && object.changed()) return -EIO;  // a refusal changes nothing
    append(object.answered(), reply);
    if (object.changed() && reply->size() > limits::write_reply_bytes_max) return -EOVERFLOW;
    outcome.broken = object.changed();
    if (const int r = object.commit(); r < 0) return r;
    outcome.broken = false;
    return code;
  });
  if (outcome.code < 0) reply->clear();
  return outcome;
}

}  // namespace zlog
