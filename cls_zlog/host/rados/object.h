#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cls_zlog/host/client_side/object_store.h"
#include "cls_zlog/host/rados/librados.h"

namespace zlog {

// One reading operation of librados, and the memory that it reads into.
class RadosRead {
 public:
  explicit RadosRead(Reads reads);

  int start(rados_ioctx_t io, rados_completion_t completion, const std::string& object, int flags);

  // Once it has succeeded: what it read, of an object of this version.
  ObjectVersion take(uint64_t version);

 private:
  using Iterator = std::shared_ptr<void>;
  struct Bytes {
    std::shared_ptr<char> data;
    size_t there[2] = {};
  };

  Iterator list(const ListRead& list, unsigned char* more);

  const RadosOperation operation_ = new_read_op();
  Reads reads_;
  Iterator attrs_;
  Iterator keys_;
  std::vector<Iterator> lists_;
  std::vector<unsigned char> more_;
  std::vector<Bytes> stream_;
};

// One writing operation of librados that makes changes of an object which has this version; 0: it
// makes the object.
RadosOperation operation_of(uint64_t version, const std::vector<Change>& changes);

// What ObjectStore::write() answers where librados answers `error` to that.
int error_of(uint64_t version, int error);

}  // namespace zlog
