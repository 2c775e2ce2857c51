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
  Seen take(uint64_t version);

 private:
  using Iterator = std::shared_ptr<void>;
  struct Bytes {
    std::shared_ptr<char> data;
    size_t there[2] = {};
  };

  Iterator list(const ListRead& list, unsigned char* more);

  const std::unique_ptr<void, void (*)(void*)> operation_ = new_read_op();
  Reads reads_;
  Iterator attrs_;
  Iterator keys_;
  std::vector<Iterator> lists_;
  std::vector<unsigned char> more_;
  std::vector<Bytes> stream_;
};

// Changes as one writing operation of librados.
class RadosChanges final : public Changes {
 public:
  explicit RadosChanges(uint64_t version);

  int start(rados_ioctx_t io, rados_completion_t completion, const std::string& object, int flags);

  // What Stock::write() answers where librados answers this.
  int error_of(int error) const;

  void remove() override;
  void attr_set(const std::string& name, std::string_view value) override;
  void omap_set(const std::string& key, std::string_view value) override;
  void omap_remove(const std::string& key) override;
  void omap_remove_range(const std::string& begin, const std::string& end) override;
  void write(uint64_t offset, std::string_view data) override;
  void zero(uint64_t offset, uint64_t length) override;

 private:
  const std::unique_ptr<void, void (*)(void*)> operation_ = new_write_op();
  const uint64_t version_;
};

}  // namespace zlog
