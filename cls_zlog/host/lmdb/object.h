#pragma once

#include <lmdb.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cls_zlog/host/listing.h"
#include "cls_zlog/host/lmdb/redo_log.h"
#include "cls_zlog/host/transaction.h"

namespace zlog {

// The names of objects that begin with `prefix`, from the first one above `after` on.
int list_objects(MDB_txn* txn, MDB_dbi dbi, std::string_view prefix, std::string_view after,
                 Listing* page);

// One object inside a transaction of an LMDB database. All objects share the database's one tree;
// docs/formats/embedded.md is the grammar of its keys:
//   n ‖ object name               → id u64, size u64: the object exists, with so long a bytestream
//   o ‖ id ‖ k ‖ key              → value
//   o ‖ id ‖ m ‖ attribute name   → value (format 1: o ‖ id ‖ a)
//   o ‖ id ‖ x ‖ offset           → an extent: the bytes of the stream from there on
// (integers in keys are big-endian, so that they sort). Extents never overlap; what lies in none
// reads as zeros. A hole therefore costs nothing, and appending rewrites nothing.
class LmdbObject final : public Backing {
 public:
  // `format` is the database's. Notes what it changes in `changes`, unless that is nullptr.
  LmdbObject(MDB_txn* txn, MDB_dbi dbi, int format, std::string_view name, Redo* changes);

  int exists(bool* exists) override;
  int attr_get(const std::string& name, std::string* value) override;
  int omap_get(const std::string& key, std::string* value) override;
  int omap_list(const std::string& after, const std::string& prefix, uint64_t count_max, Page* out,
                bool* more) override;
  int read(uint64_t offset, uint64_t length, Pieces* pieces) override;

  int apply(Change&& change) override;

 private:
  enum class Kind : char { kAttrOfOld = 'a', kOmap = 'k', kAttr = 'm', kExtent = 'x' };

  std::string key_of(Kind kind, std::string_view name) const;
  std::string extent_key(uint64_t offset) const;
  int get(const std::string& key, std::string* value) const;
  int put(const std::string& key, std::string_view value);
  int remove_key(const std::string& key);
  int remove_range(const std::string& begin, const std::string& end);
  int put_record();
  int create();
  int remove();
  int omap_remove(const std::string& key);
  int write(uint64_t offset, std::string_view data);
  int zero(uint64_t offset, uint64_t length);
  int put_extents(uint64_t offset, std::string_view data);
  int punch(uint64_t begin, uint64_t end);

  // Calls `visit(offset, bytes)` for every extent that overlaps [begin, end), ascending, until it
  // answers other than 0. The tree may not change meanwhile.
  template <typename Visit>
  int each_extent(uint64_t begin, uint64_t end, Visit&& visit) const;

  MDB_txn* const txn_;
  const MDB_dbi dbi_;
  const Kind attr_;
  const std::string record_key_;
  Redo* const changes_;
  bool loaded_ = false;  // what follows is as in the tree
  bool exists_ = false;
  uint64_t id_ = 0;
  uint64_t size_ = 0;  // bytes
};

}  // namespace zlog
