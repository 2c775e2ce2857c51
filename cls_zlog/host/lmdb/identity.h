#pragma once

#include <lmdb.h>
#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

#include "cls_zlog/host/lmdb/call.h"

// A database stores the format of its contents, and a random number that is called its incarnation.
// A backup that replaces the store gets a new incarnation, because the entries that follow can
// differ from earlier ones at the same positions. All calls return 0 or a negative errno; ENOENT
// means that the database does not contain the value.
namespace zlog {

constexpr std::string_view kFormatKey = "F";
constexpr std::string_view kFormat = "zlog-embedded 2";
constexpr std::string_view kFormatWithoutRedoLog = "zlog-embedded 1";
constexpr std::string_view kIncarnationKey = "I";
constexpr size_t kIncarnationBytes = 16;

// Returns EPROTO if the format is unknown.
inline int check_format(MDB_txn* txn) {
  std::string format;
  if (const int error = get_value(txn, kFormatKey, &format)) return error;
  return format == kFormat || format == kFormatWithoutRedoLog ? 0 : -EPROTO;
}

inline int read_incarnation(MDB_txn* txn, std::string* incarnation) {
  return get_value(txn, kIncarnationKey, incarnation);
}

inline int put_new_incarnation(MDB_txn* txn, std::string* incarnation) {
  incarnation->resize(kIncarnationBytes);
  const auto got = ::getrandom(incarnation->data(), incarnation->size(), 0);
  if (got != ssize_t{kIncarnationBytes}) return got < 0 ? -errno : -EIO;
  return put_value(txn, kIncarnationKey, *incarnation);
}

}  // namespace zlog
