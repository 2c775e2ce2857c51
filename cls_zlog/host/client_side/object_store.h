#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/buffer.h"
#include "cls_zlog/base/object.h"
#include "cls_zlog/host/async_host.h"

namespace zlog {

// What a method reads of an object beside its attributes: questions, and their answers once they
// have been read.
struct KeyRead {
  std::string key;
  bool found = false;
  std::string value = {};
};
struct ListRead {
  std::string after;
  std::string prefix;
  uint64_t count = 0;
  Page page = {};
  bool more = false;
};
struct StreamRead {
  uint64_t offset = 0;
  uint64_t length = 0;
  Buffer bytes = {};  // fewer at the stream's end
};
struct Reads {
  std::vector<KeyRead> keys;
  std::vector<ListRead> lists;
  std::vector<StreamRead> stream;

  bool empty() const { return keys.empty() && lists.empty() && stream.empty(); }
  void add(Reads other);
};

using Attrs = std::map<std::string, std::string>;

// What has been read of an object, all of it at one version. RADOS gives an object another, higher
// one with each change, also when it is removed and made again.
struct Seen {
  uint64_t version = 0;  // 0: there is no such object
  Attrs attrs;
  Reads reads;
};

// Changes of an object, to be made together and in this order.
class Changes {
 public:
  virtual ~Changes() = default;
  virtual void remove() = 0;
  virtual void attr_set(const std::string& name, std::string_view value) = 0;
  virtual void omap_set(const std::string& key, std::string_view value) = 0;
  virtual void omap_remove(const std::string& key) = 0;
  virtual void omap_remove_range(const std::string& begin, const std::string& end) = 0;
  virtual void write(uint64_t offset, std::string_view data) = 0;
  virtual void zero(uint64_t offset, uint64_t length) = 0;
};

// The operations on objects that every cluster has. Each `done` is called exactly once, as those of
// an AsyncHost are.
class Stock {
 public:
  using ReadDone = std::function<void(int error, Seen seen)>;
  using WriteDone = std::function<void(int error, uint64_t version)>;

  virtual ~Stock() = default;

  // Reads the attributes and what is asked for, in one step. A missing object is no error. `copy`:
  // of a copy chosen at random.
  virtual Ticket read(const std::string& object, Reads reads, bool copy, ReadDone done) = 0;

  // Changes of an object that has this version; 0: they make it.
  virtual std::unique_ptr<Changes> changes(uint64_t version) = 0;

  // Makes them, and tells the version that the object has then. ESTALE: it had another version
  // before, and nothing was changed. `flags` are the method's.
  virtual Ticket write(const std::string& object, std::unique_ptr<Changes> changes, int flags,
                       WriteDone done) = 0;

  virtual void give_up(Ticket ticket) = 0;
};

}  // namespace zlog
