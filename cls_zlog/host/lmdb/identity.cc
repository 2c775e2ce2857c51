#include "cls_zlog/host/lmdb/identity.h"

#include <sys/random.h>

#include <cerrno>
#include <string_view>

#include "cls_zlog/host/lmdb/shared_sequencer.h"
#include "cls_zlog/host/lmdb/value.h"

namespace zlog {
namespace {

constexpr std::string_view kFormatKey = "F";
constexpr std::string_view kFormat = "zlog-embedded 2";
constexpr std::string_view kWithoutRedoLog = "zlog-embedded 1";
constexpr std::string_view kIncarnationKey = "I";

}  // namespace

int check_format(MDB_txn* txn, MDB_dbi dbi) {
  std::string format;
  if (const int error = get_value(txn, dbi, kFormatKey, &format)) return error;
  return format == kFormat || format == kWithoutRedoLog ? 0 : -EPROTO;
}

int read_incarnation(MDB_txn* txn, MDB_dbi dbi, std::string* incarnation) {
  return get_value(txn, dbi, kIncarnationKey, incarnation);
}

int put_format(MDB_txn* txn, MDB_dbi dbi) { return put_value(txn, dbi, kFormatKey, kFormat); }

int touch_format(MDB_txn* txn, MDB_dbi dbi) {
  std::string format;
  if (const int error = get_value(txn, dbi, kFormatKey, &format)) return error;
  return put_value(txn, dbi, kFormatKey, format);
}

int put_new_incarnation(MDB_txn* txn, MDB_dbi dbi, std::string* incarnation) {
  incarnation->resize(kIncarnationBytes);
  const auto got = ::getrandom(incarnation->data(), incarnation->size(), 0);
  if (got != static_cast<ssize_t>(incarnation->size())) return got < 0 ? -errno : -EIO;
  return put_value(txn, dbi, kIncarnationKey, *incarnation);
}

}  // namespace zlog
