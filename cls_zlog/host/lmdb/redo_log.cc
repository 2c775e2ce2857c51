#include "cls_zlog/host/lmdb/redo_log.h"

#include <unistd.h>

#include <cerrno>

#include "cls_zlog/base/crc32c.h"
#include "cls_zlog/host/lmdb/boot_id.h"
#include "cls_zlog/host/lmdb/call.h"
#include "cls_zlog/host/lmdb/file.h"
#include "cls_zlog/wire/wire.h"

namespace zlog {
namespace {

constexpr std::string_view kKey = "J";
constexpr std::string_view kTitle = "zlog redo log";  // at the beginning of the value

// LMDB's part of a meta page is in the first sector.
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kEndAt = 512;
constexpr uint64_t kEndBytes = kPageBytes - kEndAt;

constexpr uint64_t kSlotBytes = uint64_t{64} << 10;  // each has pages of its own
constexpr size_t kHeaderBytes = kBootIdBytes + 2 * sizeof(uint32_t) + sizeof(uint64_t);
static_assert(kHeaderBytes + Redo::kBytesMax <= kSlotBytes);

// The flag of a value with pages of its own (struct MDB_page of LMDB 0.9).
constexpr uint16_t kOverflowPage = 0x04;
constexpr uint64_t kValueBytes = kPageBytes - kPageHeaderBytes + 2 * kSlotBytes;

constexpr size_t kChangeBytes = sizeof(uint8_t) + 2 * sizeof(uint32_t);

int write_whole(int fd, std::string_view bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? -errno : -EIO;
    offset += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

bool read_whole(int fd, std::string* bytes, uint64_t offset) {
  return ::pread(fd, bytes->data(), bytes->size(), static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(bytes->size());
}

// The contents of a slot from its length on.
std::string body_of(uint64_t transaction, std::string_view changes) {
  std::string body;
  wire::Writer(&body).u32(static_cast<uint32_t>(changes.size())).u64(transaction).bytes(changes);
  return body;
}

}  // namespace

void Redo::add(uint8_t kind, std::string_view key, std::string_view value) {
  whole_ = whole_ && bytes_.size() + kChangeBytes + key.size() + value.size() <= kBytesMax;
  if (!whole_) return;
  wire::Writer out(&bytes_);
  out.u8(kind).u32(static_cast<uint32_t>(key.size())).u32(static_cast<uint32_t>(value.size()));
  out.bytes(key).bytes(value);
}

int Redo::apply(std::string_view changes, MDB_txn* txn) {
  wire::Reader reader(changes);
  while (!reader.rest().empty()) {
    const uint8_t kind = reader.u8();
    const uint32_t key_bytes = reader.u32(), value_bytes = reader.u32();
    const std::string_view key = reader.bytes(key_bytes), value = reader.bytes(value_bytes);
    if (!reader.ok() || (kind != kPut && kind != kRemove)) return -EIO;
    const int error = kind == kPut ? put_value(txn, key, value) : remove_value(txn, key);
    if (error != 0 && error != -ENOENT) return error;
  }
  return 0;
}

int RedoLog::make(MDB_txn* txn) {
  std::string value(kTitle);
  value.resize(kValueBytes);
  return put_value(txn, kKey, value);
}

int RedoLog::find(MDB_env* env, MDB_txn* txn) {
  offset_ = 0;
  MDB_val key = value_of(kKey), value{};
  MDB_stat stat{};
  if (const int result = ::mdb_stat(txn, kEntries, &stat)) return lmdb_errno(result);
  const int result = lmdb_call([&] { return ::mdb_get(txn, kEntries, &key, &value); });
  if (result != 0) return lmdb_errno(result);
  if (value.mv_size != kValueBytes) return -EIO;
  const char* page = static_cast<const char*>(value.mv_data) - kPageHeaderBytes;
  if ((number_at<uint16_t>(page + kPageFlagsAt) & kOverflowPage) == 0) return -EIO;
  const uint64_t begin = number_at<uint64_t>(page) * stat.ms_psize;
  if (const int failed = ::mdb_env_get_fd(env, &fd_)) return lmdb_errno(failed);
  // If the file and the map have different bytes there, LMDB uses another layout of its pages.
  std::string title(kTitle.size(), '\0');
  if (!read_whole(fd_, &title, begin + kPageHeaderBytes) || title != kTitle) return -EIO;
  read_boot_id(&boot_);
  page_bytes_ = stat.ms_psize;
  offset_ = begin + kPageBytes;
  return 0;
}

std::array<uint64_t, 2> RedoLog::slots(uint64_t transaction) const {
  const uint64_t turn = transaction % 2;  // as LMDB alternates between its meta pages
  return {turn * page_bytes_ + kEndAt, offset_ + turn * kSlotBytes};
}

bool RedoLog::note(uint64_t transaction, std::string_view incarnation, const Redo& changes) const {
  if (!found() || !changes.notable()) return false;
  const std::string body = body_of(transaction, changes.bytes());
  std::string noted = boot_;
  wire::Writer(&noted).u32(crc32c(body, crc32c(incarnation))).bytes(body);
  const auto [small, large] = slots(transaction);
  return write_whole(fd_, noted, noted.size() <= kEndBytes ? small : large) == 0;
}

bool RedoLog::load(uint64_t transaction, std::string_view incarnation, std::string* changes) const {
  if (!found()) return false;
  for (const uint64_t slot : slots(transaction)) {
    std::string header(kHeaderBytes, '\0');
    if (!read_whole(fd_, &header, slot)) continue;
    wire::Reader reader(header);
    reader.bytes(kBootIdBytes);
    const uint32_t crc = reader.u32(), length = reader.u32();
    if (reader.u64() != transaction || length > Redo::kBytesMax) continue;
    changes->resize(length);
    if (!read_whole(fd_, changes, slot + kHeaderBytes)) continue;
    if (crc == crc32c(body_of(transaction, *changes), crc32c(incarnation))) return true;
  }
  return false;
}

bool RedoLog::noted_since_boot(uint64_t transaction) const {
  for (const uint64_t slot : slots(transaction)) {
    std::string boot(kBootIdBytes, '\0');
    if (read_whole(fd_, &boot, slot) && boot == boot_ && boot[0] != '\0') return true;
  }
  return false;
}

int RedoLog::forget(uint64_t transaction) const {
  const std::string nothing(kHeaderBytes, '\0');
  for (const uint64_t slot : slots(transaction)) {
    if (const int error = write_whole(fd_, nothing, slot)) return error;
  }
  return 0;
}

int RedoLog::clear() const {
  const int error = forget(0);
  return error != 0 ? error : forget(1);
}

}  // namespace zlog
