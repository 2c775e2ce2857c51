#include "cls_zlog/host/lmdb/compact_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <vector>

#include "cls_zlog/host/lmdb/call.h"
#include "cls_zlog/host/lmdb/file.h"
#include "cls_zlog/host/lmdb/locks.h"
#include "cls_zlog/host/lmdb/redo_log.h"

namespace zlog {
namespace {

constexpr const char* kAcl = "system.posix_acl_access";  // acl(5); not every file has one

// Gives a file the owner and the permissions of another.
int copy_permissions(const char* from, int to) {
  struct stat status{};
  if (::stat(from, &status) != 0) return -errno;
  if (::fchown(to, status.st_uid, status.st_gid) != 0) return -errno;
  if (::fchmod(to, status.st_mode & 07777) != 0) return -errno;
  const ssize_t size = ::getxattr(from, kAcl, nullptr, 0);
  if (size < 0) return errno == ENODATA || errno == ENOTSUP ? 0 : -errno;
  std::vector<char> acl(static_cast<size_t>(size));
  if (::getxattr(from, kAcl, acl.data(), acl.size()) != size) return -errno;
  return ::fsetxattr(to, kAcl, acl.data(), acl.size(), 0) == 0 ? 0 : -errno;
}

int entries_of(MDB_env* env, size_t* entries) {
  MDB_stat stat{};
  const int result = ::mdb_env_stat(env, &stat);
  *entries = stat.ms_entries;
  return lmdb_errno(result);
}

// Prepares the copy, which nothing else uses, for replacing the database, and counts its entries.
int complete(const std::string& path, size_t* entries) {
  LmdbFile file;
  if (const int error = file.open(path, 0)) return error;
  if (const int error = entries_of(file.env(), entries)) return error;
  return file.transact(0, [&](MDB_txn* txn) {
    RedoLog log;  // notes nothing of a copy, whose transactions are counted from 1
    const int error = log.find(file.env(), txn);
    if (error == -ENOENT) return 0;  // format 1
    return error != 0 ? error : log.clear();
  });
}

}  // namespace

int CompactCopy::write(MDB_env* env, std::string* reason) {
  fd_ = FileDescriptor(::open(copy_path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (fd_ < 0) return -errno;
  if (const int error = copy_permissions(path_.c_str(), fd_)) {
    *reason = "only the owner of data.mdb can compact it";
    return error;
  }
  if (const int result = ::mdb_env_copyfd2(env, fd_, MDB_CP_COMPACT)) {
    if (result < 0) *reason = ::mdb_strerror(result);
    return lmdb_errno(result);
  }
  size_t wanted = 0, copied = 0;
  if (const int error = entries_of(env, &wanted)) return error;
  if (const int error = complete(copy_path_, &copied)) return error;
  if (wanted != copied) {
    *reason = "the copy lacks entries";
    return -EIO;
  }
  return ::fsync(fd_) == 0 ? 0 : -errno;
}

int CompactCopy::put_in_place(LmdbLocks* locks, std::string* reason) {
  if (const int error = locks->take_alone()) {
    if (error == -EBUSY) *reason = "a program that uses LMDB has it open";
    return error;
  }
  if (::rename(copy_path_.c_str(), path_.c_str()) != 0) return -errno;
  in_place_ = true;
  const int error = sync_directory(path_.substr(0, path_.rfind('/')));
  if (error != 0) *reason = "the directory can't be synced, so a crash may bring the old file back";
  return error;
}

void CompactCopy::remove() const { ::unlink(copy_path_.c_str()); }

}  // namespace zlog
