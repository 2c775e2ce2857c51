#include "cls_zlog/host/lmdb/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "cls_zlog/host/file_descriptor.h"
#include "cls_zlog/host/lmdb/call.h"

namespace zlog {
namespace {

// The layout of LMDB 0.9's file on a 64-bit machine (struct MDB_page, MDB_node, MDB_meta and MDB_db
// in its lmdb.h and mdb.c).
constexpr size_t kPageLowerAt = 12;
constexpr uint16_t kBranchPage = 0x01;
constexpr uint16_t kLeafPage = 0x02;
constexpr size_t kNodeHeaderBytes = 8;
constexpr uint16_t kBigData =
    0x01;  // the value has pages of its own, the node has the first's number
constexpr size_t kTreesAt[] = {40, 88};  // in a meta page: of free pages, and of entries
constexpr size_t kDepthAt = 6;           // in a tree's description
constexpr size_t kRootAt = 40;
constexpr size_t kTransactionAt = 144;
constexpr size_t kMetaBytes = 152;
constexpr uint64_t kMetaPages = 2;
constexpr uint64_t kNoPage = ~uint64_t{0};

template <typename Number>
Number number_at(const std::vector<char>& bytes, size_t at) {
  return zlog::number_at<Number>(bytes.data() + at);
}

// The pages that a file's trees use, read without the map.
class Pages {
 public:
  Pages(int fd, size_t page_bytes) : fd_(fd), page_bytes_(page_bytes) {}

  // Returns whether the file has all pages of the newest trees. The caller must hold a transaction
  // open, which keeps these pages from being reused.
  bool complete() {
    std::vector<char> newest, other;
    if (!load(0, &newest) || !load(1, &other)) return false;
    if (number_at<uint64_t>(newest, kTransactionAt) < number_at<uint64_t>(other, kTransactionAt)) {
      newest.swap(other);
    }
    // The size is read only now, since a commit writes its pages before its meta page.
    struct stat status{};
    if (::fstat(fd_, &status) != 0) return false;
    pages_ = static_cast<uint64_t>(status.st_size) / page_bytes_;
    for (const size_t tree : kTreesAt) {
      const auto depth = number_at<uint16_t>(newest, tree + kDepthAt);
      const auto root = number_at<uint64_t>(newest, tree + kRootAt);
      if (root != kNoPage && !has_tree(root, depth)) return false;
    }
    return true;
  }

 private:
  bool load(uint64_t page, std::vector<char>* bytes) const {
    bytes->resize(page_bytes_);
    return page < pages_ && page_bytes_ >= kMetaBytes &&
           ::pread(fd_, bytes->data(), page_bytes_, static_cast<off_t>(page * page_bytes_)) ==
               static_cast<ssize_t>(page_bytes_);
  }

  // Returns whether the file has the whole tree below a page. A tree that is deeper than its
  // description says is damaged.
  bool has_tree(uint64_t page, unsigned depth) const {
    std::vector<char> bytes;
    if (depth == 0 || !load(page, &bytes)) return false;
    const auto flags = number_at<uint16_t>(bytes, kPageFlagsAt);
    const auto lower = number_at<uint16_t>(bytes, kPageLowerAt);
    if (lower < kPageHeaderBytes || lower > page_bytes_) return false;
    for (size_t at = kPageHeaderBytes; at < lower; at += sizeof(uint16_t)) {
      const size_t node = number_at<uint16_t>(bytes, at);
      if (node + kNodeHeaderBytes > page_bytes_) return false;
      if (flags & kBranchPage ? !has_tree(child(bytes, node), depth - 1)
                              : !(flags & kLeafPage) || !has_value(bytes, node)) {
        return false;
      }
    }
    return true;
  }

  static uint64_t child(const std::vector<char>& bytes, size_t node) {
    return number_at<uint32_t>(bytes, node) | uint64_t{number_at<uint16_t>(bytes, node + 4)} << 32;
  }

  bool has_value(const std::vector<char>& bytes, size_t node) const {
    if (!(number_at<uint16_t>(bytes, node + 4) & kBigData)) return true;
    const size_t at = node + kNodeHeaderBytes + number_at<uint16_t>(bytes, node + 6);
    if (at + sizeof(uint64_t) > page_bytes_) return false;
    const uint64_t count =
        (kPageHeaderBytes - 1 + number_at<uint32_t>(bytes, node)) / page_bytes_ + 1;
    const auto first = number_at<uint64_t>(bytes, at);
    return first < pages_ && count <= pages_ - first;
  }

  const int fd_;
  const size_t page_bytes_;
  uint64_t pages_ = kMetaPages;  // of the file, once these were read
};

}  // namespace

int LmdbFile::open(const std::string& path, unsigned flags, MDB_assert_func* on_damage) {
  if (const int result = ::mdb_env_create(&env_)) return lmdb_errno(result);
  ::mdb_env_set_assert(env_, on_damage);
  return lmdb_errno(::mdb_env_open(env_, path.c_str(), flags | MDB_NOSUBDIR | MDB_NOLOCK, 0));
}

int LmdbFile::transact(unsigned flags, const std::function<int(MDB_txn* txn)>& work) {
  MDB_txn* txn = nullptr;
  if (const int result = ::mdb_txn_begin(env_, nullptr, flags, &txn)) return lmdb_errno(result);
  MDB_dbi entries = kEntries;
  int error = lmdb_errno(::mdb_dbi_open(txn, nullptr, 0, &entries));
  if (error == 0) error = work(txn);
  if (error == 0) return lmdb_errno(::mdb_txn_commit(txn));
  ::mdb_txn_abort(txn);
  return error;
}

int check_not_emptied(const std::string& directory, std::string* reason) {
  struct stat status{};
  // The lock file does not prove that the store was in use, because LMDB creates it first and
  // another process may be doing that now. The sequencer's file does: it is created after the
  // database was opened and before the first entry.
  if (::stat((directory + "/sequencer").c_str(), &status) != 0) return 0;
  const bool found = ::stat((directory + "/data.mdb").c_str(), &status) == 0;
  if (!found && errno != ENOENT) return -errno;
  if (found && status.st_size != 0) return 0;
  *reason = std::string("data.mdb is ") + (found ? "empty" : "missing") +
            ", but the store was in use: its entries are gone";
  return -EIO;
}

int check_length(MDB_env* env, std::string* reason) {
  int fd = -1;
  MDB_envinfo info{};
  MDB_stat stat{};
  ::mdb_env_get_fd(env, &fd);
  ::mdb_env_info(env, &info);
  ::mdb_env_stat(env, &stat);
  struct stat status{};
  if (::fstat(fd, &status) != 0) return -errno;
  const uint64_t needed = (uint64_t{info.me_last_pgno} + 1) * stat.ms_psize;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size >= needed) return 0;

  // This need not be damage: LMDB never writes pages that one transaction both allocated and freed.
  MDB_txn* txn = nullptr;
  if (const int result = ::mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn)) return lmdb_errno(result);
  const bool complete = Pages(fd, stat.ms_psize).complete();
  ::mdb_txn_abort(txn);
  if (complete) return 0;
  *reason = "data.mdb is shorter than its header says (" + std::to_string(size) + " bytes, " +
            std::to_string(needed) + " needed): it was truncated";
  return -EIO;
}

int share_as_database(int fd, const std::string& directory) {
  struct stat status{};
  if (::stat((directory + "/data.mdb").c_str(), &status) != 0) return errno == ENOENT ? 0 : -errno;
  return ::fchmod(fd, status.st_mode & 0666) == 0 ? 0 : -errno;
}

int sync_directory(const std::string& directory) {
  const FileDescriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd >= 0 && ::fsync(fd) == 0 ? 0 : -errno;
}

}  // namespace zlog
