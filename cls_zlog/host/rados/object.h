#pragma once

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cls_zlog/host/client_side/object_store.h"
#include "cls_zlog/host/rados/librados.h"

namespace zlog {

// A read operation of librados and the memory that it reads into.
class RadosRead {
 public:
  // As in the class (osd/cls_zlog.cc), no read covers the whole bytestream.
  explicit RadosRead(Reads reads)
      : reads_(std::move(reads)), more_(reads_.lists.size()), stream_(reads_.stream.size()) {
    rados_xattrs_iter_t attrs = nullptr;
    librados().read_op_getxattrs(operation_.get(), &attrs, nullptr);
    attrs_ = {attrs, librados().getxattrs_end};
    if (!reads_.keys.empty()) {
      std::vector<const char*> keys;
      std::vector<size_t> sizes;
      for (const KeyRead& read : reads_.keys) {
        keys.push_back(read.key.data());
        sizes.push_back(read.key.size());
      }
      rados_omap_iter_t found = nullptr;
      librados().read_op_omap_get_vals_by_keys2(operation_.get(), keys.data(), keys.size(),
                                                sizes.data(), &found, nullptr);
      keys_ = {found, librados().omap_get_end};
    }
    for (size_t i = 0; i < reads_.lists.size(); i++) {
      const ListRead& list = reads_.lists[i];
      rados_omap_iter_t found = nullptr;
      librados().read_op_omap_get_vals2(operation_.get(), list.after.c_str(), list.prefix.c_str(),
                                        list.count, &found, &more_[i], nullptr);
      lists_.emplace_back(found, librados().omap_get_end);
    }
    for (size_t i = 0; i < reads_.stream.size(); i++) {
      const StreamRead& read = reads_.stream[i];
      Bytes& bytes = stream_[i];
      bytes.data = {new char[read.length], std::default_delete<char[]>()};
      const uint64_t begin = read.offset == 0 ? 1 : read.length;
      librados().read_op_read(operation_.get(), read.offset, begin, bytes.data.get(),
                              &bytes.there[0], nullptr);
      if (begin == read.length) continue;
      librados().read_op_read(operation_.get(), read.offset + begin, read.length - begin,
                              bytes.data.get() + begin, &bytes.there[1], nullptr);
    }
  }

  int start(rados_ioctx_t io, rados_completion_t completion, const std::string& object, int flags) {
    return librados().aio_read_op_operate(operation_.get(), io, completion, object.c_str(), flags);
  }

  // Returns the object, which has this version. Call it after the operation has succeeded.
  ObjectVersion take(uint64_t version) {
    ObjectVersion known;
    known.version = version;
    const char *name = nullptr, *value = nullptr;
    size_t size = 0;
    while (librados().getxattrs_next(attrs_.get(), &name, &value, &size) == 0 && name != nullptr) {
      known.attrs.emplace(name, std::string(value, size));
    }
    each_pair(keys_.get(), [&](const std::string& key, std::string_view found) {
      for (KeyRead& read : reads_.keys) {
        if (read.key != key) continue;
        read.found = true;
        read.value = found;
      }
    });
    for (size_t i = 0; i < lists_.size(); i++) {
      ListRead& list = reads_.lists[i];
      list.more = more_[i] != 0;
      each_pair(lists_[i].get(), [&](std::string key, std::string_view found) {
        list.page.emplace_hint(list.page.end(), std::move(key), Buffer{found, lists_[i]});
      });
    }
    for (size_t i = 0; i < stream_.size(); i++) {
      const Bytes& bytes = stream_[i];
      reads_.stream[i].bytes = {{bytes.data.get(), bytes.there[0] + bytes.there[1]}, bytes.data};
    }
    known.reads = std::move(reads_);
    return known;
  }

 private:
  using Iterator = std::shared_ptr<void>;
  struct Bytes {
    std::shared_ptr<char> data;
    size_t there[2] = {};
  };

  // Calls visit(key, value) for each pair of a listing. nullptr is an empty listing.
  template <typename Visit>
  static void each_pair(rados_omap_iter_t pairs, const Visit& visit) {
    char *key = nullptr, *value = nullptr;
    size_t key_size = 0, value_size = 0;
    const auto next = [&] {
      return librados().omap_get_next2(pairs, &key, &value, &key_size, &value_size) == 0 &&
             key != nullptr;
    };
    while (pairs != nullptr && next()) {
      visit(std::string(key, key_size), std::string_view(value, value_size));
    }
  }

  const RadosOperation operation_ = new_read_op();
  Reads reads_;
  Iterator attrs_;
  Iterator keys_;
  std::vector<Iterator> lists_;
  std::vector<unsigned char> more_;
  std::vector<Bytes> stream_;
};

inline void add_change(rados_write_op_t operation, const Change& change) {
  const char *key = change.key.data(), *value = change.value.data();
  const size_t key_size = change.key.size(), value_size = change.value.size();
  switch (change.kind) {
    case Change::Kind::kCreate:
      return;  // operation_of() does
    case Change::Kind::kRemove:
      return librados().write_op_remove(operation);
    case Change::Kind::kAttrSet:
      return librados().write_op_setxattr(operation, key, value, value_size);
    case Change::Kind::kOmapSet:
      return librados().write_op_omap_set2(operation, &key, &value, &key_size, &value_size, 1);
    case Change::Kind::kOmapRemove:
      return librados().write_op_omap_rm_keys2(operation, &key, &key_size, 1);
    case Change::Kind::kOmapRemoveRange:
      return librados().write_op_omap_rm_range2(operation, key, key_size, value, value_size);
    case Change::Kind::kWrite:
      return librados().write_op_write(operation, change.data.data(), change.data.size(),
                                       change.offset);
    case Change::Kind::kZero:
      return librados().write_op_zero(operation, change.offset, change.length);
  }
}

// Makes a librados write operation that applies the changes if the object has this version. If the
// version is 0, the operation must create the object.
inline RadosOperation operation_of(uint64_t version, const std::vector<Change>& changes) {
  constexpr int kExclusive = 1;  // LIBRADOS_CREATE_EXCLUSIVE
  RadosOperation operation = new_write_op();
  if (version == 0) {
    librados().write_op_create(operation.get(), kExclusive, nullptr);
  } else {
    librados().write_op_assert_version(operation.get(), version);
  }
  for (const Change& change : changes) add_change(operation.get(), change);
  return operation;
}

// Converts the result of an operation_of() into that of ObjectStore::write(). librados returns
// ERANGE if the object's version is higher, and EOVERFLOW if it is lower because the object was
// removed and perhaps created again. Both become ESTALE.
inline int error_of(uint64_t version, int error) {
  const bool other = version == 0 ? error == -EEXIST : error == -ERANGE || error == -EOVERFLOW;
  return other ? -ESTALE : error;
}

}  // namespace zlog
