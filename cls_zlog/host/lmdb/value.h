#pragma once

#include <lmdb.h>

#include <string>
#include <string_view>

#include "cls_zlog/host/lmdb/call.h"
#include "cls_zlog/host/lmdb/env.h"

namespace zlog {

inline MDB_val value_of(std::string_view bytes) {
  return MDB_val{bytes.size(), const_cast<char*>(bytes.data())};
}

inline std::string_view view_of(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

// All answer 0 or a negative errno: ENOENT when there is no such key.

inline int get_value(MDB_txn* txn, MDB_dbi dbi, std::string_view key, std::string* value) {
  MDB_val name = value_of(key), found{};
  const int result = lmdb_call([&] { return ::mdb_get(txn, dbi, &name, &found); });
  if (result == 0) value->assign(view_of(found));
  return lmdb_errno(result);
}

inline int put_value(MDB_txn* txn, MDB_dbi dbi, std::string_view key, std::string_view value) {
  MDB_val name = value_of(key), bytes = value_of(value);
  return lmdb_errno(lmdb_call([&] { return ::mdb_put(txn, dbi, &name, &bytes, 0); }));
}

inline int remove_value(MDB_txn* txn, MDB_dbi dbi, std::string_view key) {
  MDB_val name = value_of(key);
  return lmdb_errno(lmdb_call([&] { return ::mdb_del(txn, dbi, &name, nullptr); }));
}

}  // namespace zlog
