#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cls_zlog/host/client_side/object_store.h"
#include "cls_zlog/host/transaction.h"

namespace zlog {

// An object as far as it has been read, and the changes that methods make to it.
//
// A method that asks for what has not been read yet runs in vain: it hears EAGAIN, or of bytes that
// they are zeros (so that one run tells of all that it wants to read), and what it answers and
// changes counts for nothing. It is run again when missing() has been read.
class Draft final : public Backing {
 public:
  // Both must outlive it.
  Draft(Stock& stock, const Seen& seen)
      : stock_(stock), seen_(seen), attrs_(seen.attrs), exists_(seen.version != 0) {}

  // Whether the last method ran in vain, and what it asked for. That is nothing where it asked for
  // what an earlier one may have changed.
  bool in_vain() const { return changed_before_ || !missing_.empty(); }
  Reads take_missing() { return std::exchange(missing_, {}); }

  // What it changed; null if nothing.
  std::unique_ptr<Changes> take_changes();
  bool changed() const { return changes_ != nullptr; }

  // What then is there.
  bool exists() const { return exists_; }
  Attrs take_attrs() { return std::move(attrs_); }

  int exists(bool* exists) override;
  int attr_get(const std::string& name, std::string* value) override;
  int omap_get(const std::string& key, std::string* value) override;
  int omap_list(const std::string& after, const std::string& prefix, uint64_t count_max, Page* out,
                bool* more) override;
  int read(uint64_t offset, uint64_t length, Pieces* pieces) override;
  int create() override;
  int remove() override;
  int attr_set(const std::string& name, std::string_view value) override;
  int omap_set(const std::string& key, std::string_view value) override;
  int omap_remove(const std::string& key) override;
  int omap_remove_range(const std::string& begin, const std::string& end) override;
  int write(uint64_t offset, std::string_view data) override;
  int zero(uint64_t offset, uint64_t length) override;

 private:
  int ask();
  int change();

  Stock& stock_;
  const Seen& seen_;
  Attrs attrs_;
  bool exists_;
  Reads missing_;
  bool changed_before_ = false;  // a method asked for what an earlier one may have changed
  std::unique_ptr<Changes> changes_;
  bool attrs_changed_ = false;
  bool keys_changed_ = false;
};

}  // namespace zlog
