#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cls_zlog/host/client_side/object_store.h"
#include "cls_zlog/host/transaction.h"

namespace zlog {

// An optimistic read set: an object as far as it has been read, all at one version, and the changes
// that methods make to it, which take effect only if the object still has that version.
//
// A method that asks for what has not been read yet gets EAGAIN, or zeros instead of bytes (so that
// one run collects all that the method wants to read), and what it answers and changes counts for
// nothing. It is run again when take_missing() has been read.
class ReadSet final : public Backing {
 public:
  // `known` must outlive it.
  explicit ReadSet(const ObjectVersion& known)
      : known_(known), attrs_(known.attrs), exists_(known.version != 0) {}

  // Whether the last method lacked something, and what it asked for: nothing if it asked for what an
  // earlier method may have changed.
  bool incomplete() const { return changed_before_ || !missing_.empty(); }
  Reads take_missing() { return std::exchange(missing_, {}); }

  // What it changed.
  std::vector<Change> take_changes();
  bool changed() const { return !changes_.empty(); }

  // What then is there.
  bool exists() const { return exists_; }
  Attrs take_attrs() { return std::move(attrs_); }

  int exists(bool* exists) override;
  int attr_get(const std::string& name, std::string* value) override;
  int omap_get(const std::string& key, std::string* value) override;
  int omap_list(const std::string& after, const std::string& prefix, uint64_t count_max, Page* out,
                bool* more) override;
  int read(uint64_t offset, uint64_t length, Pieces* pieces) override;
  int apply(Change&& change) override;

 private:
  int ask();

  const ObjectVersion& known_;
  Attrs attrs_;
  bool exists_;
  Reads missing_;
  bool changed_before_ = false;  // a method asked for what an earlier one may have changed
  std::vector<Change> changes_;
  bool attrs_changed_ = false;
  bool keys_changed_ = false;
};

}  // namespace zlog
