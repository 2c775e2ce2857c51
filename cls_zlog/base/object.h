#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/buffer.h"

namespace zlog {

// Some of an object's keys and values, in ascending order of the keys. The values are views that
// are valid until the method returns.
using Page = std::map<std::string, Buffer>;

// The calls that a method of an object class can make on its object inside an OSD. Each call
// returns 0 or a negative errno.
//
// Reads see the object as it was before the method ran. Writes are buffered, and the OSD applies
// all of them if the method returns a value >= 0, and none otherwise. So a method never sees its
// own writes and never has to undo them. A writing method that reads a missing object gets ENOENT
// or ENODATA.
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

  // Reads the values of several keys, and leaves out keys that do not exist.
  virtual int omap_get_many(const std::vector<std::string>& keys, Page* out) = 0;

  // Lists up to `count_max` keys that start with `prefix` and are greater than `after`, in
  // ascending order. Sets `more` if there are others. An OSD may return fewer keys than requested.
  virtual int omap_list(const std::string& after, const std::string& prefix, uint64_t count_max,
                        Page* out, bool* more) = 0;
  virtual int omap_set(const std::string& key, std::string_view value) = 0;
  virtual int omap_remove(const std::string& key) = 0;

  // Removes the keys in [begin, end).
  virtual int omap_remove_range(const std::string& begin, const std::string& end) = 0;

  // Reads `length` bytes of the object's bytestream at `offset`, or fewer if the bytestream ends
  // before that.
  virtual int read(uint64_t offset, uint64_t length, std::string* data) = 0;

  // Appends a stored value to a read-only method's reply. Stored values follow the method's encoded
  // reply, and are copied only if necessary. `value` must come from omap_list or omap_get_many,
  // or be a part of such a value with the same owner.
  virtual int answer(const Buffer& value) = 0;
  // Like answer(), but appends the `length` bytes of the bytestream at `offset`, or nothing if some
  // of these bytes are missing. Sets `there` to the number of bytes that exist.
  virtual int answer_stream(uint64_t offset, uint64_t length, uint64_t* there) = 0;

  // Writes `data`, a part of the method's request, to the bytestream. A host need not copy it.
  virtual int write(uint64_t offset, std::string_view data) = 0;

  // Frees the space of these bytes, which then read as zeros. The bytestream keeps its size.
  virtual int zero(uint64_t offset, uint64_t length) = 0;

  // Returns the number of the process that stores this replica of the object. Returns 0 if one
  // process stores all replicas, or if the method does not run where a replica is stored.
  virtual uint64_t instance() { return 0; }
};

}  // namespace zlog
