#include "cls_zlog/host/lmdb/reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cls_zlog/host/lmdb/file.h"

namespace zlog {
namespace {

constexpr off_t kBytes = off_t{512} << 10;
constexpr off_t kStepBytes = off_t{32} << 10;

}  // namespace

Reserve::~Reserve() {
  if (fd_ >= 0) ::close(fd_);
}

void Reserve::open(const std::string& directory) {
  fd_ = ::open((directory + "/reserve").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) return;
  share_as_database(fd_, directory);
  make();
}

bool Reserve::whole() const {
  struct stat status{};
  return fd_ < 0 || ::fstat(fd_, &status) != 0 || status.st_size >= kBytes;
}

bool Reserve::make() {
  for (off_t bytes = kBytes; bytes > 0; bytes -= kStepBytes) {
    if (::posix_fallocate(fd_, 0, bytes) == 0) return bytes == kBytes;
  }
  return false;
}

void Reserve::give_up() {
  if (fd_ >= 0 && ::ftruncate(fd_, 0) != 0) return;  // then there is no more room than before
}

}  // namespace zlog
