#include "cls_zlog/host/rados/object.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace zlog {
namespace {

constexpr int kExclusive = 1;  // LIBRADOS_CREATE_EXCLUSIVE

// Calls v(key, value) for each pair of a listing.
template <typename Visit>
void each_pair(rados_omap_iter_t pairs, const Visit& visit) {
  char *key = nullptr, *value = nullptr;
  size_t key_size = 0, value_size = 0;
  const auto next = [&] {
    return librados().omap_get_next2(pairs, &key, &value, &key_size, &value_size) == 0 &&
           key != nullptr;
  };
  while (next()) visit(std::string(key, key_size), std::string_view(value, value_size));
}

}  // namespace

// The bytestream is never read as a whole by one read, as the class has it (osd/cls_zlog.cc).
RadosRead::RadosRead(Reads reads)
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
    lists_.push_back(list(reads_.lists[i], &more_[i]));
  }
  for (size_t i = 0; i < reads_.stream.size(); i++) {
    const StreamRead& read = reads_.stream[i];
    Bytes& bytes = stream_[i];
    bytes.data = {new char[read.length], std::default_delete<char[]>()};
    const uint64_t begin = read.offset == 0 ? 1 : read.length;
    librados().read_op_read(operation_.get(), read.offset, begin, bytes.data.get(), &bytes.there[0],
                            nullptr);
    if (begin == read.length) continue;
    librados().read_op_read(operation_.get(), read.offset + begin, read.length - begin,
                            bytes.data.get() + begin, &bytes.there[1], nullptr);
  }
}

RadosRead::Iterator RadosRead::list(const ListRead& list, unsigned char* more) {
  rados_omap_iter_t found = nullptr;
  librados().read_op_omap_get_vals2(operation_.get(), list.after.c_str(), list.prefix.c_str(),
                                    list.count, &found, more, nullptr);
  return {found, librados().omap_get_end};
}

int RadosRead::start(rados_ioctx_t io, rados_completion_t completion, const std::string& object,
                     int flags) {
  return librados().aio_read_op_operate(operation_.get(), io, completion, object.c_str(), flags);
}

Seen RadosRead::take(uint64_t version) {
  Seen seen;
  seen.version = version;
  const char *name = nullptr, *value = nullptr;
  size_t size = 0;
  while (librados().getxattrs_next(attrs_.get(), &name, &value, &size) == 0 && name != nullptr) {
    seen.attrs.emplace(name, std::string(value, size));
  }
  if (keys_ != nullptr) {
    each_pair(keys_.get(), [&](const std::string& key, std::string_view found) {
      for (KeyRead& read : reads_.keys) {
        if (read.key != key) continue;
        read.found = true;
        read.value = found;
      }
    });
  }
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
  seen.reads = std::move(reads_);
  return seen;
}

RadosChanges::RadosChanges(uint64_t version) : version_(version) {
  if (version_ == 0) {
    librados().write_op_create(operation_.get(), kExclusive, nullptr);
  } else {
    librados().write_op_assert_version(operation_.get(), version_);
  }
}

int RadosChanges::start(rados_ioctx_t io, rados_completion_t completion, const std::string& object,
                        int flags) {
  return librados().aio_write_op_operate(operation_.get(), io, completion, object.c_str(), nullptr,
                                         flags);
}

// The object is older than asserted (it was removed, and perhaps made again), or newer.
int RadosChanges::error_of(int error) const {
  const bool other = version_ == 0 ? error == -EEXIST : error == -ERANGE || error == -EOVERFLOW;
  return other ? -ESTALE : error;
}

void RadosChanges::remove() { librados().write_op_remove(operation_.get()); }

void RadosChanges::attr_set(const std::string& name, std::string_view value) {
  librados().write_op_setxattr(operation_.get(), name.c_str(), value.data(), value.size());
}

void RadosChanges::omap_set(const std::string& key, std::string_view value) {
  const char *keys = key.data(), *values = value.data();
  const size_t key_size = key.size(), value_size = value.size();
  librados().write_op_omap_set2(operation_.get(), &keys, &values, &key_size, &value_size, 1);
}

void RadosChanges::omap_remove(const std::string& key) {
  const char* keys = key.data();
  const size_t size = key.size();
  librados().write_op_omap_rm_keys2(operation_.get(), &keys, &size, 1);
}

void RadosChanges::omap_remove_range(const std::string& begin, const std::string& end) {
  librados().write_op_omap_rm_range2(operation_.get(), begin.data(), begin.size(), end.data(),
                                     end.size());
}

void RadosChanges::write(uint64_t offset, std::string_view data) {
  librados().write_op_write(operation_.get(), data.data(), data.size(), offset);
}

void RadosChanges::zero(uint64_t offset, uint64_t length) {
  librados().write_op_zero(operation_.get(), offset, length);
}

}  // namespace zlog
