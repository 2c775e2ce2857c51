#include "cls_zlog/host/lmdb_identity.h"

#include <sys/random.h>

#include <cerrno>
#include <string_view>

#include "cls_zlog/host/lmdb_env.h"
#include "cls_zlog/host/shared_sequencer.h"

namespace zlog {
namespace {

constexpr std::string_view kFormatKey = "F";
constexpr std::string_view kFormat = "zlog-embedded 1";
constexpr std::string_view kIncarnationKey = "I";

MDB_val value_of(std::string_view bytes) {
  return MDB_val{bytes.size(), const_cast<char*>(bytes.data())};
}

int get(MDB_txn* txn, MDB_dbi dbi, std::string_view key, std::string* value) {
  MDB_val name = value_of(key), found{};
  const int result = ::mdb_get(txn, dbi, &name, &found);
  if (result == 0) value->assign(static_cast<const char*>(found.mv_data), found.mv_size);
  return lmdb_errno(result);
}

int put(MDB_txn* txn, MDB_dbi dbi, std::string_view key, std::string_view value) {
  MDB_val name = value_of(key), bytes = value_of(value);
  return lmdb_errno(::mdb_put(txn, dbi, &name, &bytes, 0));
}

}  // namespace

int check_format(MDB_txn* txn, MDB_dbi dbi) {
  std::string format;
  if (const int error = get(txn, dbi, kFormatKey, &format)) return error;
  return format == kFormat ? 0 : -EPROTO;
}

int read_incarnation(MDB_txn* txn, MDB_dbi dbi, std::string* incarnation) {
  return get(txn, dbi, kIncarnationKey, incarnation);
}

int put_format(MDB_txn* txn, MDB_dbi dbi) { return put(txn, dbi, kFormatKey, kFormat); }

int put_new_incarnation(MDB_txn* txn, MDB_dbi dbi, std::string* incarnation) {
  incarnation->resize(kIncarnationBytes);
  const auto got = ::getrandom(incarnation->data(), incarnation->size(), 0);
  if (got != static_cast<ssize_t>(incarnation->size())) return got < 0 ? -errno : -EIO;
  return put(txn, dbi, kIncarnationKey, *incarnation);
}

}  // namespace zlog
