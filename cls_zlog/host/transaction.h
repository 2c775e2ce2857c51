#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cls_zlog/base/object.h"
#include "cls_zlog/methods.h"

namespace zlog {

// Bytes that are one after the other, and lie here and there.
using Pieces = std::vector<std::string_view>;

// A change of an object that is legal at its turn: kCreate is made of a missing object, every other
// one of an existing object.
struct Change {
  enum class Kind {
    kCreate,           // empty, no attributes, no keys
    kRemove,           // with everything in it
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

// One object as a host keeps it: the little that a host has to provide so that methods can run on
// it. Calls return 0 or a negative errno. Reads are only made while the object exists, except
// exists(). Changes arrive in one go from run_method() after the method has succeeded: the host
// applies them as they come, and undoes all of them itself if one fails (see run_method).
class Backing {
 public:
  virtual ~Backing() = default;

  virtual int exists(bool* exists) = 0;
  virtual int attr_get(const std::string& name, std::string* value) = 0;  // ENODATA
  virtual int omap_get(const std::string& key, std::string* value) = 0;   // ENOENT
  // As Object::omap_list; `count_max` is at least 1. Without owners, the values stay where they are
  // until the object changes.
  virtual int omap_list(const std::string& after, const std::string& prefix, uint64_t count_max,
                        Page* out, bool* more) = 0;
  // The bytes of the stream, fewer at its end, in pieces that stay until the object changes.
  virtual int read(uint64_t offset, uint64_t length, Pieces* pieces) = 0;

  virtual int apply(Change&& change) = 0;
};

// An Object that reads from a Backing and keeps what is written until commit(): what an OSD does
// for the length of one method. Its errors are those measured on a real OSD (Ceph 16.2).
class BufferedObject final : public Object {
 public:
  // `flags` are the method's: without kWrite every change is refused with EIO, without kRead every
  // read.
  BufferedObject(Backing& backing, int flags, bool exists);

  int create(bool exclusive) override;
  int remove() override;
  int attr_get(const std::string& name, std::string* value) override;
  int attr_set(const std::string& name, std::string_view value) override;
  int omap_get(const std::string& key, std::string* value) override;
  int omap_list(const std::string& after, const std::string& prefix, uint64_t count_max, Page* out,
                bool* more) override;
  int omap_set(const std::string& key, std::string_view value) override;
  int omap_remove(const std::string& key) override;
  int omap_remove_range(const std::string& begin, const std::string& end) override;
  int read(uint64_t offset, uint64_t length, std::string* data) override;
  int answer(const Buffer& value) override;
  int answer_stream(uint64_t offset, uint64_t length, uint64_t* there) override;
  int write(uint64_t offset, std::string_view data) override;
  int zero(uint64_t offset, uint64_t length) override;

  // What was answered, in order. It stays until the object changes.
  const Pieces& answered() const { return answered_; }

  // Whether there is anything to apply.
  bool changed() const { return !changes_.empty(); }

  // Applies the buffered changes in the order in which they were made; stops at the first that
  // fails.
  int commit();

 private:
  int may_read() const;
  int may_change() const;
  void ensure_created();

  Backing& backing_;
  const int flags_;
  const bool exists_;  // before the method
  bool exists_after_;  // once the buffered changes are applied
  std::vector<Change> changes_;
  Pieces answered_;
};

// What became of one method call.
struct Outcome {
  int code = 0;         // negative errno or Code: the answer to the caller
  bool broken = false;  // applying failed half-way: the host must drop its whole transaction
};

// Runs a method on an object as an OSD does: a read-only method on a missing object is ENOENT
// without running; an exception becomes ENOMEM or EIO; so does a refusal that has changed
// something; a write method's reply above 64 bytes is EOVERFLOW; a negative answer applies nothing
// and has no reply. Changes are applied to `backing` before it returns.
Outcome run_method(const Method& method, Backing& backing, std::string_view payload,
                   std::string* reply);

}  // namespace zlog
