#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cls_zlog/base/buffer.h"

namespace zlog {

// Some of an object's keys in ascending order, with their values. The values are not copied, and
// are valid until the method returns.
using Page = std::map<std::string, Buffer>;

// The calls that an object class can make on its object inside an OSD. Each returns 0 or a negative
// errno.
//
// Reads see the object as it was before the method ran. Writes are buffered, and are applied
// together if the method returns >= 0. A method therefore never reads its own writes, and never has
// to undo them.
//
// In a writing method, reading a missing object returns ENOENT or ENODATA, depending on the call.
class Object {
 public:
  virtual ~Object() = default;

  // Creates the object unless it exists. Returns EEXIST if it exists and `exclusive` is set.
  virtual int create(bool exclusive) = 0;

  // Removes the object with its bytes, attributes and keys, or returns ENOENT if there is none.
  virtual int remove() = 0;

  // Reads an attribute. Returns ENOENT if there is no object, ENODATA if there is no attribute.
  virtual int attr_get(const std::string& name, std::string* value) = 0;
  virtual int attr_set(const std::string& name, std::string_view value) = 0;

  // Reads the value of a key. Returns ENOENT if the object or the key does not exist.
  virtual int omap_get(const std::string& key, std::string* value) = 0;

  // Reads up to `count_max` of the keys that start with `prefix` and are greater than `after`, in
  // ascending order. Sets `more` if there are further keys: an OSD may return fewer than requested.
  virtual int omap_list(const std::string& after, const std::string& prefix, uint64_t count_max,
                        Page* out, bool* more) = 0;
  virtual int omap_set(const std::string& key, std::string_view value) = 0;
  virtual int omap_remove(const std::string& key) = 0;

  // Removes the keys in [begin, end).
  virtual int omap_remove_range(const std::string& begin, const std::string& end) = 0;

  // Reads up to `length` bytes of the object's bytestream, starting at `offset`. Returns fewer only
  // at the end of the bytestream.
  virtual int read(uint64_t offset, uint64_t length, std::string* data) = 0;

  // answer() and answer_stream() append stored bytes to the reply of a read-only method, after its
  // `out` and in the order of the calls. The host may do so without a copy. `value` must be (a part
  // of) a value that omap_list returned, with the same owner.
  virtual int answer(const Buffer& value) = 0;
  // Appends `length` bytes of the bytestream, starting at `offset`. Sets `there` to the number of
  // these bytes that exist; if some are missing, nothing is appended.
  virtual int answer_stream(uint64_t offset, uint64_t length, uint64_t* there) = 0;

  // Writes `data`, a part of the method's request, to the bytestream. A host need not copy it.
  virtual int write(uint64_t offset, std::string_view data) = 0;

  // Frees the space of these bytes, which then read as zeros. The bytestream keeps its size.
  virtual int zero(uint64_t offset, uint64_t length) = 0;

  // The number of the process that stores this replica of the object. It is 0 if one process stores
  // all replicas, or if the processes that store replicas run no methods.
  virtual uint64_t instance() { return 0; }
};

}  // namespace zlog
