#pragma once

#include <lmdb.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zlog {

// What one transaction changes in the database, key by key and in order.
class Redo {
 public:
  static constexpr size_t kBytesMax = size_t{60} << 10;

  void put(std::string_view key, std::string_view value);
  void remove(std::string_view key);

  bool empty() const { return whole_ && bytes_.empty(); }
  // Whether they are few enough to be noted, and so to be told by bytes().
  bool whole() const { return whole_; }
  const std::string& bytes() const { return bytes_; }

  // Makes changes again. Made twice they come to the same. Answers 0 or a negative errno: EIO when
  // they are malformed.
  static int apply(std::string_view changes, MDB_txn* txn, MDB_dbi dbi);

 private:
  void add(uint8_t kind, std::string_view key, std::string_view value);

  bool whole_ = true;
  std::string bytes_;
};

// Keeps what the last two transactions changed, in the database's own file, so that one sync makes a
// transaction durable.
//
// LMDB syncs twice for a commit: the pages, and then the meta page that names their root. With
// MDB_NOMETASYNC it leaves the second sync to the next commit. What is noted here before the first
// one is durable with the pages: if the power fails before the meta page is on the disk, the
// database comes back as it was before the transaction, and the changes are made once more.
//
// Transactions take turns in two slots. The older one is done with when the younger one begins: the
// sync of a transaction makes the meta page of the one before it durable.
//
// A slot is the end of a meta page, which LMDB leaves alone: the two lie side by side and are written
// anyway, so that nothing else needs to be. What takes more room goes to a value of the database that
// is there for it. LMDB never moves that, and its bytes are written past LMDB.
// Life: none → found; a database without it (format 1) has every commit synced twice.
class RedoLog {
 public:
  // Makes the place, with nothing noted. Answers 0 or a negative errno.
  static int make(MDB_txn* txn, MDB_dbi dbi);

  // Finds the place. Answers 0 or a negative errno: ENOENT when there is none.
  int find(MDB_env* env, MDB_txn* txn, MDB_dbi dbi);
  bool found() const { return offset_ != 0; }

  // Notes the changes of the transaction under way, before it is committed. False: too many, or the
  // write failed, and the commit has to sync twice.
  bool note(uint64_t transaction, std::string_view incarnation, const Redo& changes) const;

  // The changes of a transaction, if they were noted, in this incarnation, and are whole.
  bool load(uint64_t transaction, std::string_view incarnation, std::string* changes) const;

  // Whether this run of the kernel has noted the transaction: then what was written since is in the
  // file, durable or not.
  bool noted_since_boot(uint64_t transaction) const;

  // Makes void what is noted of a transaction, or all. Answers 0 or a negative errno.
  int forget(uint64_t transaction) const;
  int clear() const;

 private:
  // Where a transaction's changes are noted, if they are this large.
  uint64_t slot(uint64_t transaction, size_t bytes) const;
  bool load_at(uint64_t offset, uint64_t transaction, std::string_view incarnation,
               std::string* changes) const;
  bool noted_at(uint64_t offset) const;

  int fd_ = -1;  // LMDB's
  uint64_t page_bytes_ = 0;
  uint64_t offset_ = 0;  // of the value's slots in the file; 0: there is none
  std::string boot_;
};

}  // namespace zlog
