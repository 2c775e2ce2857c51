#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/object.h"
#include "cls_zlog/methods.h"

namespace zlog {

// Consecutive bytes that are in several places in memory.
using Pieces = std::vector<std::string_view>;

// An OSD returns at most this many keys from one listing (osd_max_omap_entries_per_request).
constexpr uint64_t kListingMax = 1024;

inline void add_zeros(uint64_t count, Pieces* pieces) {
  static constexpr char kZeros[64u << 10] = {};
  for (; count > 0; count -= pieces->back().size()) {
    pieces->emplace_back(kZeros, std::min<uint64_t>(count, sizeof kZeros));
  }
}

// A change that a method makes to an object. The object must exist when the change is applied,
// except that kCreate requires a missing object.
struct Change {
  enum class Kind {
    kCreate,           // empty, no attributes, no keys
    kRemove,           // with all of its contents
    kAttrSet,          // `key` to `value`
    kOmapSet,          // `key` to `value`
    kOmapRemove,       // `key`, which may be missing
    kOmapRemoveRange,  // from `key` on to before `value`
    kWrite,            // `data` at `offset`; a gap before it reads as zeros
    kZero,             // `length` bytes at `offset`: never grows the stream
  };

  Kind kind;
  std::string key = {};
  std::string value = {};
  uint64_t offset = 0;
  uint64_t length = 0;
  std::string_view data = {};  // part of the method's request
};

// An object as a host stores it, with the calls that run_method() needs. They return 0 or a
// negative errno. Only exists() and apply() may be called for a missing object. run_method()
// applies the changes after the method succeeds. If one fails, the host must undo all of them.
class Backing {
 public:
  virtual ~Backing() = default;

  virtual int exists(bool* exists) = 0;
  virtual int attr_get(const std::string& name, std::string* value) = 0;  // ENODATA
  // Returns whether a read has returned zeros instead of bytes that must first be fetched.
  virtual bool incomplete() const { return false; }
  // Values without an owner are valid until the object changes.
  virtual int omap_get(const std::string& key, Buffer* value) = 0;  // ENOENT
  // Works like Object::omap_list, but `count_max` is at least 1.
  virtual int omap_list(const std::string& after, const std::string& prefix, uint64_t count_max,
                        Page* out, bool* more) = 0;
  // Reads bytes of the bytestream. Returns fewer than requested only at its end. The pieces are
  // valid until the object changes.
  virtual int read(uint64_t offset, uint64_t length, Pieces* pieces) = 0;

  virtual int apply(Change&& change) = 0;
};

// The result of one method call.
struct Outcome {
  int code = 0;         // negative errno or Code: the answer to the caller
  bool broken = false;  // applying failed half-way: the host must drop its whole transaction
};

// Runs a method on an object as an OSD does, and applies its changes to `backing`. If the resulting
// code is negative, nothing has changed and there is no reply. Apart from the method's own errors,
// it can be
//   ENOENT     the method only reads, and the object does not exist
//   EIO        the method made a call that its flags do not allow, threw an exception (ENOMEM for
//              std::bad_alloc), or refused the request but changed something
//   EOVERFLOW  the reply of a writing method is larger than 64 bytes
Outcome run_method(const Method& method, Backing& backing, std::string_view payload,
                   std::string* reply);

}  // namespace zlog
