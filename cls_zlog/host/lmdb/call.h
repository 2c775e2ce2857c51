#pragma once

#include <lmdb.h>

#include <cerrno>
#include <csetjmp>
#include <string>
#include <string_view>
#include <utility>

namespace zlog {

// The handle that LMDB gives the unnamed database in its file, which has all entries.
constexpr MDB_dbi kEntries = 1;

// Returns the negative errno for the result of an LMDB call.
inline int lmdb_errno(int result) {
  static constexpr struct {
    int result;
    int error;
  } kErrors[] = {
      {MDB_NOTFOUND, ENOENT},     {MDB_MAP_FULL, ENOSPC},         {MDB_TXN_FULL, E2BIG},
      {MDB_READERS_FULL, EUSERS}, {MDB_MAP_RESIZED, ENOMEM},      {MDB_BAD_VALSIZE, ENAMETOOLONG},
      {MDB_INVALID, EPROTO},      {MDB_VERSION_MISMATCH, EPROTO}, {MDB_PANIC, ENOTRECOVERABLE}};
  if (result >= 0) return -result;
  for (const auto& each : kErrors) {
    if (each.result == result) return -each.error;
  }
  return -EIO;
}

// Keeps LMDB from aborting the process if pages contradict each other: the lmdb_call() in progress
// is left by a longjmp instead. After that, a read transaction can still be ended. A write
// transaction cannot, because LMDB keeps parts of it on the abandoned stack.
struct LmdbAssertion {
  static inline thread_local std::jmp_buf* call = nullptr;  // the call under way
  static inline thread_local bool failed = false;           // since the last take()

  // For mdb_env_set_assert.
  static void fail(MDB_env*, const char*) {
    if (call == nullptr) return;
    failed = true;
    std::longjmp(*call, 1);  // NOLINT(modernize-avoid-setjmp-longjmp): out of C
  }

  static bool take() { return std::exchange(failed, false); }
};

// Makes a call to LMDB and returns its result, or MDB_CORRUPTED if an assertion failed in it. The
// call must not create C++ objects that need a destructor.
template <typename Call>
int lmdb_call(const Call& call) {
  std::jmp_buf here;
  if (setjmp(here) != 0) {  // NOLINT(modernize-avoid-setjmp-longjmp)
    LmdbAssertion::call = nullptr;
    return MDB_CORRUPTED;
  }
  LmdbAssertion::call = &here;
  const int result = call();
  LmdbAssertion::call = nullptr;
  return result;
}

inline MDB_val value_of(std::string_view bytes) {
  return MDB_val{bytes.size(), const_cast<char*>(bytes.data())};
}

inline std::string_view view_of(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

// These three return 0 or a negative errno: ENOENT if the key does not exist.

template <typename T>  // a string, or a view that is valid until the transaction changes the value
int get_value(MDB_txn* txn, std::string_view key, T* value) {
  MDB_val name = value_of(key), found{};
  const int result = lmdb_call([&] { return ::mdb_get(txn, kEntries, &name, &found); });
  if (result == 0) *value = view_of(found);
  return lmdb_errno(result);
}

inline int put_value(MDB_txn* txn, std::string_view key, std::string_view value) {
  MDB_val name = value_of(key), bytes = value_of(value);
  return lmdb_errno(lmdb_call([&] { return ::mdb_put(txn, kEntries, &name, &bytes, 0); }));
}

inline int remove_value(MDB_txn* txn, std::string_view key) {
  MDB_val name = value_of(key);
  return lmdb_errno(lmdb_call([&] { return ::mdb_del(txn, kEntries, &name, nullptr); }));
}

// A cursor in a tree. It must be destroyed before the transaction ends.
class Cursor {
 public:
  explicit Cursor(MDB_txn* txn, MDB_dbi dbi = kEntries)
      : result_(::mdb_cursor_open(txn, dbi, &cursor_)) {}
  ~Cursor() {
    if (cursor_ != nullptr) ::mdb_cursor_close(cursor_);
  }
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  // seek() moves to the first key >= `key`. On a new cursor, next() moves to the database's first
  // key. All moves return false at the end or after an error.
  bool seek(const std::string& key) {
    key_ = value_of(key);
    return move(MDB_SET_RANGE);
  }
  bool next() { return move(MDB_NEXT); }
  bool previous() { return move(MDB_PREV); }
  bool last() { return move(MDB_LAST); }
  bool remove() {
    result_ = lmdb_call([&] { return ::mdb_cursor_del(cursor_, 0); });
    return result_ == 0;
  }

  std::string_view key() const { return view_of(key_); }
  std::string_view value() const { return view_of(value_); }

  // Returns the error of the last move; 0 if it reached the end.
  int error() const { return result_ == MDB_NOTFOUND ? 0 : lmdb_errno(result_); }

 private:
  bool move(MDB_cursor_op operation) {
    if (cursor_ == nullptr) return false;
    result_ = lmdb_call([&] { return ::mdb_cursor_get(cursor_, &key_, &value_, operation); });
    return result_ == 0;
  }

  MDB_cursor* cursor_ = nullptr;
  int result_;
  MDB_val key_{}, value_{};
};

}  // namespace zlog
