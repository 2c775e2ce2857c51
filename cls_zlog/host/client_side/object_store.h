#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cls_zlog/base/buffer.h"
#include "cls_zlog/base/object.h"
#include "cls_zlog/host/async_host.h"
#include "cls_zlog/host/transaction.h"

namespace zlog {

// What a method can read besides the object's attributes: single keys, pages of keys, and ranges of
// bytes. A finished read also contains its result.
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
  void add(Reads other) {
    std::move(other.keys.begin(), other.keys.end(), std::back_inserter(keys));
    std::move(other.lists.begin(), other.lists.end(), std::back_inserter(lists));
    std::move(other.stream.begin(), other.stream.end(), std::back_inserter(stream));
  }
};

using Attrs = std::map<std::string, std::string>;

// What a client knows about an object at one version. In RADOS, each change to an object raises its
// version, even its removal and its creation.
struct ObjectVersion {
  uint64_t version = 0;  // 0: the object does not exist
  Attrs attrs;
  Reads reads;
};

// An asynchronous store of objects with the operations that every cluster supports. It calls each
// operation's `done` callback exactly once.
class ObjectStore {
 public:
  using ReadDone = std::function<void(int error, ObjectVersion known)>;
  using WriteDone = std::function<void(int error, uint64_t version)>;

  virtual ~ObjectStore() = default;

  // Reads the object's attributes and carries out `reads`, all in one step. If `replica` is set,
  // reads from a randomly chosen replica. A missing object is not an error: its version is 0.
  virtual Ticket read(const std::string& object, Reads reads, bool replica, ReadDone done) = 0;

  // Applies the changes in order and in one step if the object has this version. Version 0 means
  // that the object must not exist, and that the changes create it. The result is the object's new
  // version, or ESTALE if it has another version. `flags` are the flags of the method that made the
  // changes. The changes' data is not used after this function returns.
  virtual Ticket write(const std::string& object, uint64_t version, std::vector<Change> changes,
                       int flags, WriteDone done) = 0;

  virtual void give_up(Ticket ticket) = 0;
};

}  // namespace zlog
