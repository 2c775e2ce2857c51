#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cls_zlog/base/buffer.h"

namespace zlog {

// Keys of an object and their values, ascending. The values are not copied, and are valid until the
// method returns.
using Page = std::map<std::string, Buffer>;

// The calls that an object class can make on its object inside an OSD. Each returns 0 or a negative
// errno.
//
// Reads see the object as it was before the method ran. Writes are buffered, and applied together if
// the method returns >= 0. So a method never reads its own writes, and nothing has to be undone.
//
// In a method that writes, a read of a missing object returns ENOENT or ENODATA, depending on the call.
class Object {
 public:
  virtual ~Object() = default;

  // Creates the object, unless it exists. EEXIST if `exclusive` and it exists.
  virtual int create(bool exclusive) = 0;

  // Removes the object with its bytes, attributes and keys. ENOENT: no object.
  virtual int remove() = 0;

  // Reads an attribute. ENOENT: no object; ENODATA: no attribute.
  virtual int attr_get(const std::string& name, std::string* value) = 0;
  virtual int attr_set(const std::string& name, std::string_view value) = 0;

  // Reads one key. ENOENT: no object or no key.
  virtual int omap_get(const std::string& key, std::string* value) = 0;

  // Reads the keys > `after` that start with `prefix`, ascending, at most `count_max` of them. A
  // host may return fewer (an OSD limits a listing); `more` is then set.
  virtual int omap_list(const std::string& after, const std::string& prefix, uint64_t count_max,
                        Page* out, bool* more) = 0;
  virtual int omap_set(const std::string& key, std::string_view value) = 0;
  virtual int omap_remove(const std::string& key) = 0;

  // Removes the keys in [begin, end).
  virtual int omap_remove_range(const std::string& begin, const std::string& end) = 0;

  // Reads `length` bytes of the object's bytestream at `offset`; fewer at its end. length 0: none.
  virtual int read(uint64_t offset, uint64_t length, std::string* data) = 0;

  // These two append stored bytes to the reply of a method that only reads, after its `out`, in the
  // order of the calls. A host need not copy them. `value` is all or part of a value from omap_list,
  // with its owner.
  virtual int answer(const Buffer& value) = 0;
  // `length` bytes of the bytestream at `offset`. `there`: how many of them exist; unless all do,
  // nothing is appended.
  virtual int answer_stream(uint64_t offset, uint64_t length, uint64_t* there) = 0;

  // Writes a part of the method's request to the bytestream. A host need not copy it.
  virtual int write(uint64_t offset, std::string_view data) = 0;

  // Punches a hole: the bytes read as zero and their space is freed. The size does not change.
  virtual int zero(uint64_t offset, uint64_t length) = 0;

  // The number of the process that stores this replica of the object; 0 if one process stores all
  // replicas, or if the storing processes run no methods.
  virtual uint64_t instance() { return 0; }
};

}  // namespace zlog
