#pragma once

#include <lmdb.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace zlog {

// What one transaction changes in the database, key by key and in order.
class Redo {
 public:
  static constexpr size_t kBytesMax = size_t{60} << 10;

  void put(std::string_view key, std::string_view value) { add(kPut, key, value); }
  void remove(std::string_view key) { add(kRemove, key, {}); }

  // Whether there are changes, and few enough to be noted. Then bytes() has all of them.
  bool notable() const { return whole_ && !bytes_.empty(); }
  const std::string& bytes() const { return bytes_; }

  // Makes changes again, which is idempotent. Returns 0 or a negative errno: EIO if they are
  // malformed.
  static int apply(std::string_view changes, MDB_txn* txn);

 private:
  static constexpr uint8_t kPut = 1, kRemove = 2;

  void add(uint8_t kind, std::string_view key, std::string_view value);

  bool whole_ = true;
  std::string bytes_;
};

// Keeps the changes of the last two transactions in the database's own file, so that one sync makes a
// transaction durable.
//
// LMDB syncs twice for a commit: the pages, and then the meta page that names their root. With
// MDB_NOMETASYNC it leaves the second sync to the next commit. Changes that are noted before the first
// sync are durable with the pages: if the power fails before the meta page is on the disk, they are made
// again. The next transaction's sync makes the meta page durable, so two slots are enough.
//
// A slot is the unused end of a meta page. Larger changes go to a value of the database that is reserved
// for them, and written without LMDB, which never moves it. A database without it (format 1) has every
// commit synced twice.
//
// The calls that return an int return 0 or a negative errno.
class RedoLog {
 public:
  // Creates the reserved value, with nothing noted.
  static int make(MDB_txn* txn);

  // Finds it. ENOENT: the database has none.
  int find(MDB_env* env, MDB_txn* txn);
  bool found() const { return offset_ != 0; }

  // Notes the changes of the transaction under way, before it is committed. If it returns false there
  // are none or too many, or the write failed, and the commit has to sync twice.
  bool note(uint64_t transaction, std::string_view incarnation, const Redo& changes) const;

  // Reads the changes of a transaction. False unless they were noted in this incarnation and are
  // whole.
  bool load(uint64_t transaction, std::string_view incarnation, std::string* changes) const;

  // Whether the transaction was noted since the kernel was booted: then all that was written after it
  // is in the file, durable or not.
  bool noted_since_boot(uint64_t transaction) const;

  // Erases the changes of a transaction, or all.
  int forget(uint64_t transaction) const;
  int clear() const;

 private:
  // Where a transaction's changes are noted: small ones, and larger ones.
  std::array<uint64_t, 2> slots(uint64_t transaction) const;

  int fd_ = -1;  // LMDB's
  uint64_t page_bytes_ = 0;
  uint64_t offset_ = 0;  // of the value's slots in the file; 0 if there is none
  std::string boot_;
};

}  // namespace zlog
