#pragma once

#include <lmdb.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zlog {

// The changes of one transaction in the database, key by key and in order.
class Redo {
 public:
  static constexpr size_t kBytesMax = size_t{60} << 10;

  void put(std::string_view key, std::string_view value) { add(kPut, key, value); }
  void remove(std::string_view key) { add(kRemove, key, {}); }

  // Returns whether there are changes, and few enough to be noted. bytes() then has all of them.
  bool notable() const { return whole_ && !bytes_.empty(); }
  const std::string& bytes() const { return bytes_; }

  // Applies the changes again, which is idempotent. Returns 0 or a negative errno, for example -EIO
  // if the changes are malformed.
  static int apply(std::string_view changes, MDB_txn* txn);

 private:
  static constexpr uint8_t kPut = 1, kRemove = 2;

  void add(uint8_t kind, std::string_view key, std::string_view value);

  bool whole_ = true;
  std::string bytes_;
};

// Notes the changes of the last two transactions in the database's own file, so that a commit needs
// one sync instead of LMDB's two.
//
// LMDB syncs the changed pages, and then the meta page that refers to them. With MDB_NOMETASYNC, it
// leaves the second sync to the next commit. The changes are noted before the first sync, which
// makes them durable too. If the power fails before the meta page is on disk, they are applied
// again. The next commit makes the meta page durable, so it is enough to note two transactions.
//
// Small changes are noted in a slot, which is the unused end of a meta page. Larger changes are
// noted in a reserved value, which LMDB never moves and zlog writes directly. A database without
// this value (format 1) syncs twice for each commit. Calls that return an int return 0 or a
// negative errno.
class RedoLog {
 public:
  // Creates the reserved value, with nothing noted.
  static int make(MDB_txn* txn);

  // Finds the reserved value. Returns ENOENT if the database has none.
  int find(MDB_env* env, MDB_txn* txn);
  bool found() const { return offset_ != 0; }

  // Notes the current transaction's changes before it is committed. Returns false if there are none
  // or too many, or if the write failed; the commit must then sync twice.
  bool note(uint64_t transaction, std::string_view incarnation, const Redo& changes) const;

  // Reads the changes of a transaction. Returns false if they are incomplete or were noted in
  // another incarnation of the store.
  bool load(uint64_t transaction, std::string_view incarnation, std::string* changes) const;

  // Returns whether the transaction was noted since the kernel was booted. If so, everything that
  // was written to the file later is still there, even if it was not synced.
  bool noted_since_boot(uint64_t transaction) const;

  // Erases the changes of a transaction, or all.
  int forget(uint64_t transaction) const;
  int clear() const;

 private:
  // Returns the offsets of a transaction's two slots: for small changes, and for larger ones.
  std::array<uint64_t, 2> slots(uint64_t transaction) const;

  int fd_ = -1;  // LMDB's
  uint64_t page_bytes_ = 0;
  uint64_t offset_ = 0;  // of the value's slots in the file; 0 if there is none
  std::string boot_;
};

}  // namespace zlog
