#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cls_zlog/base/buffer.h"

namespace zlog {

// Keys of an object and their values, ascending. The values are read where the host has them, and
// are there until the method returns.
using Page = std::map<std::string, Buffer>;

// The calls that a method may make on its object: what an object class may do inside an OSD, and no
// more. Every call returns 0 or a negative errno.
//
// Reads see the object as it was before the method ran; writes are buffered, applied together when
// the method returns >= 0 and dropped when it returns < 0. A method therefore never reads what it
// has just written, and "nothing applied" needs no undoing.
//
// Inside a method that writes, an OSD answers a read of a missing object with ENOENT or ENODATA
// depending on the call: treat both as "there is no such object".
class Object {
 public:
  virtual ~Object() = default;

  // Makes the object. EEXIST when `exclusive` and it exists; without, an existing object is left
  // as is.
  virtual int create(bool exclusive) = 0;

  // Removes the object with its bytes, attributes and keys. ENOENT when there is none.
  virtual int remove() = 0;

  // Reads an attribute. ENOENT: no object; ENODATA: no attribute.
  virtual int attr_get(const std::string& name, std::string* value) = 0;
  virtual int attr_set(const std::string& name, std::string_view value) = 0;

  // Reads one key. ENOENT: no object or no key.
  virtual int omap_get(const std::string& key, std::string* value) = 0;

  // Reads the keys > `after` that start with `prefix`, ascending, at most `count_max` of them. A
  // host may return fewer than asked for (an OSD caps a listing); `more` says that some are left.
  virtual int omap_list(const std::string& after, const std::string& prefix, uint64_t count_max,
                        Page* out, bool* more) = 0;
  virtual int omap_set(const std::string& key, std::string_view value) = 0;
  virtual int omap_remove(const std::string& key) = 0;

  // Removes the keys in [begin, end).
  virtual int omap_remove_range(const std::string& begin, const std::string& end) = 0;

  // Reads `length` bytes of the object's bytestream at `offset`; fewer at its end. length 0: none.
  virtual int read(uint64_t offset, uint64_t length, std::string* data) = 0;

  // Two ways of answering with stored bytes, for methods that only read. A reply is what the method
  // puts into `out` and then, in the order of the calls, what it answered; a host need not copy the
  // latter. They are there once the method returns >= 0.
  //
  // `value` is one that omap_list gave, or a part of it, with its owner.
  virtual int answer(const Buffer& value) = 0;
  // `length` bytes of the object's bytestream at `offset`. When they are not all there, because it
  // ends before, nothing is answered and `there` says how many are.
  virtual int answer_stream(uint64_t offset, uint64_t length, uint64_t* there) = 0;

  // Writes to the bytestream what is part of the method's request: a host need not copy it.
  virtual int write(uint64_t offset, std::string_view data) = 0;

  // Punches a hole: the bytes read as zero and their space is given back. The size does not change.
  virtual int zero(uint64_t offset, uint64_t length) = 0;

  // Tells the process that keeps this copy of the object from all others; 0: one keeps all copies,
  // or none does that could run methods.
  virtual uint64_t instance() { return 0; }
};

}  // namespace zlog
