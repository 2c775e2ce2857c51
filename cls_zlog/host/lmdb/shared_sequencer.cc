#include "cls_zlog/host/lmdb/shared_sequencer.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>

#include "cls_zlog/base/limits.h"
#include "cls_zlog/host/file_descriptor.h"
#include "cls_zlog/host/lmdb/boot_id.h"
#include "cls_zlog/host/lmdb/file.h"
#include "cls_zlog/host/lmdb/identity.h"

namespace zlog {
namespace {

constexpr char kMagic[8] = {'z', 'l', 'o', 'g', 's', 'e', 'q', 'r'};
constexpr uint32_t kVersion = 2;
constexpr uint32_t kSlots = 1024;
constexpr int kLockSeconds = 5;  // a slot is held for nanoseconds, unless its holder was stopped

static_assert(std::atomic<uint64_t>::is_always_lock_free, "shared between processes");
static_assert(std::atomic<uint32_t>::is_always_lock_free, "shared between processes");
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "a futex is a plain 32-bit word");

int initialise_mutex(pthread_mutex_t* mutex) {
  pthread_mutexattr_t attributes;
  if (const int error = ::pthread_mutexattr_init(&attributes)) return -error;
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  const int error = ::pthread_mutex_init(mutex, &attributes);
  ::pthread_mutexattr_destroy(&attributes);
  return -error;
}

void futex_wake_all(std::atomic<uint32_t>* word) {
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void futex_wait(std::atomic<uint32_t>* word, uint32_t seen, std::chrono::nanoseconds timeout) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timespec limit{seconds.count(), (timeout - seconds).count()};
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT, seen, &limit, nullptr, 0);
}

}  // namespace

// Holds a robust mutex. If the mutex's last owner died while holding it, sets `broken`, because the
// guarded data may be inconsistent.
class SharedSequencer::Lock {
 public:
  Lock(pthread_mutex_t* mutex, uint32_t* broken) : mutex_(mutex) {
    timespec deadline{};
    ::clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += kLockSeconds;
    error_ = ::pthread_mutex_timedlock(mutex, &deadline);
    if (error_ == EOWNERDEAD) {
      *broken = 1;
      error_ = ::pthread_mutex_consistent(mutex);
    }
  }
  ~Lock() {
    if (error_ == 0) ::pthread_mutex_unlock(mutex_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  int error() const { return -error_; }

 private:
  pthread_mutex_t* const mutex_;
  int error_ = 0;
};

// A cache line or two per log, so that two logs do not slow each other down.
struct alignas(128) SharedSequencer::Slot {
  pthread_mutex_t mutex;         // guards the fields that are not atomic
  std::atomic<uint64_t> log_id;  // valid while `used`; read without the lock to find the slot
  std::atomic<uint32_t> used;    // 0 or 1
  uint32_t broken;  // 1: a process died holding the mutex; nothing is granted until activated
  uint64_t epoch;
  uint64_t tail;
  std::atomic<uint32_t> changes;  // the futex: counts changes of epoch and tail
  std::atomic<uint32_t> waiters;  // waits on it (stays too high once a waiting process was killed)

  bool holds(uint64_t id) const { return used == 1 && log_id == id; }

  // Counts a change and wakes the waits for it.
  void announce() {
    changes++;
    if (waiters != 0) futex_wake_all(&changes);
  }

  // Waits while `changes` equals `seen`.
  void wait(uint32_t seen, std::chrono::nanoseconds timeout) {
    waiters++;
    futex_wait(&changes, seen, timeout);
    waiters--;
  }
};

struct SharedSequencer::Region {
  char magic[sizeof kMagic];
  uint32_t version;
  uint32_t slot_bytes;  // differs where the C library's mutex does
  char boot[kBootIdBytes];
  pthread_mutex_t claiming;  // held while a log is given a slot, so that it gets only one
  pthread_mutex_t writing;   // held by a writer of the database
  char incarnation[kIncarnationBytes];
  std::atomic<uint64_t> transactions;  // 0: no database is noted
  Slot slots[kSlots];
};

int SharedSequencer::open(const std::string& directory,
                          std::shared_ptr<SharedSequencer>* sequencer) {
  const FileDescriptor folder(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder < 0) return -errno;
  while (::flock(folder, LOCK_EX) != 0) {  // released when the folder is closed
    if (errno != EINTR) return -errno;
  }
  const std::string path = directory + "/sequencer";
  Mapping region;
  int error = map_file(path, &region);
  if (error == -ENOENT) {
    error = create_file(directory, path);
    if (error == 0) error = map_file(path, &region);
  }
  if (error == 0) sequencer->reset(new SharedSequencer(std::move(region)));
  return error;
}

int SharedSequencer::open_anonymous(std::shared_ptr<SharedSequencer>* sequencer) {
  Mapping region;
  int error = map(-1, &region);
  if (error == 0) error = initialise(region.get());
  if (error == 0) sequencer->reset(new SharedSequencer(std::move(region)));
  return error;
}

void SharedSequencer::Unmap::operator()(Region* region) const { ::munmap(region, sizeof *region); }

// Maps a file, or, if `fd` is -1, memory for this process and its children.
int SharedSequencer::map(int fd, Mapping* region) {
  const int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
  void* memory = ::mmap(nullptr, sizeof(Region), PROT_READ | PROT_WRITE, flags, fd, 0);
  if (memory == MAP_FAILED) return -errno;
  region->reset(static_cast<Region*>(memory));
  return 0;
}

int SharedSequencer::initialise(Region* region) {
  std::memcpy(region->magic, kMagic, sizeof kMagic);
  region->version = kVersion;
  region->slot_bytes = sizeof(Slot);
  std::string boot;
  read_boot_id(&boot);  // open() has read it before; memory that is not shared needs none
  boot.copy(region->boot, sizeof region->boot);
  if (const int error = initialise_mutex(&region->claiming)) return error;
  if (const int error = initialise_mutex(&region->writing)) return error;
  for (Slot& slot : region->slots) {
    if (const int error = initialise_mutex(&slot.mutex)) return error;
  }
  return 0;
}

// Creates a new file and renames it to `path`. A process that still uses the old file finds it
// complete, and notices the replacement when its epoch is refused.
int SharedSequencer::create_file(const std::string& directory, const std::string& path) {
  const std::string fresh = path + ".new";
  const FileDescriptor file(::open(fresh.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file < 0) return -errno;
  if (const int error = share_as_database(file, directory)) return error;
  // Allocates every block now, so that a full disk causes an error here and not a SIGBUS later.
  if (const int error = ::posix_fallocate(file, 0, sizeof(Region))) return -error;
  Mapping region;
  if (const int error = map(file, &region)) return error;
  if (const int error = initialise(region.get())) return error;
  return ::rename(fresh.c_str(), path.c_str()) == 0 ? 0 : -errno;
}

// Returns ENOENT if the file is missing or unusable.
int SharedSequencer::map_file(const std::string& path, Mapping* region) {
  std::string boot;  // locks and grants of another run of the kernel mean nothing
  if (const int error = read_boot_id(&boot)) return error;
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file < 0) return -errno;
  struct stat status{};
  if (::fstat(file, &status) != 0) return -errno;
  if (status.st_size != off_t{sizeof(Region)}) return -ENOENT;
  if (const int error = map(file, region)) return error;
  const bool usable = std::memcmp((*region)->magic, kMagic, sizeof kMagic) == 0 &&
                      (*region)->version == kVersion && (*region)->slot_bytes == sizeof(Slot) &&
                      boot.compare(0, kBootIdBytes, (*region)->boot, kBootIdBytes) == 0;
  return usable ? 0 : -ENOENT;
}

int SharedSequencer::activate(uint64_t log_id, uint64_t epoch, uint64_t tail) {
  Slot* slot = nullptr;
  if (const int error = claim(log_id, &slot)) return error;
  {
    const Lock lock(&slot->mutex, &slot->broken);
    if (lock.error()) return lock.error();
    if (!slot->holds(log_id)) return -ESTALE;  // released in between
    if (epoch <= slot->epoch) return -ESTALE;
    slot->epoch = epoch;
    slot->tail = tail;
    slot->broken = 0;
  }
  slot->announce();
  return 0;
}

// Calls use(slot) under the lock of the slot of a log that is active at an epoch.
template <typename Use>
int SharedSequencer::use(uint64_t log_id, uint64_t epoch, const Use& use) {
  Slot* slot = find(log_id);
  if (slot == nullptr) return -ESTALE;
  const Lock lock(&slot->mutex, &slot->broken);
  if (lock.error()) return lock.error();
  return slot->holds(log_id) && !slot->broken && slot->epoch == epoch ? use(*slot) : -ESTALE;
}

int SharedSequencer::next(uint64_t log_id, uint64_t epoch, uint64_t count, uint64_t* first) {
  Slot* changed = nullptr;
  const int error = use(log_id, epoch, [&](Slot& slot) {
    if (count > limits::position_max - slot.tail) return -EOVERFLOW;
    *first = slot.tail;
    slot.tail += count;
    changed = &slot;
    return 0;
  });
  if (changed != nullptr) changed->announce();
  return error;
}

int SharedSequencer::tail(uint64_t log_id, uint64_t epoch, uint64_t* tail) {
  return use(log_id, epoch, [&](const Slot& slot) {
    *tail = slot.tail;
    return 0;
  });
}

int SharedSequencer::wait(uint64_t log_id, uint64_t epoch, uint64_t position, int timeout_ms,
                          uint64_t* tail) {
  using Clock = std::chrono::steady_clock;
  Slot* slot = find(log_id);
  if (slot == nullptr) return -ESTALE;
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    const uint32_t seen = slot->changes.load();
    if (const int error = this->tail(log_id, epoch, tail)) return error;
    if (*tail > position) return 0;
    const auto left = deadline - Clock::now();
    if (left <= Clock::duration::zero()) return -EAGAIN;
    slot->wait(seen, left);
  }
}

int SharedSequencer::release(uint64_t log_id) {
  Slot* slot = find(log_id);
  if (slot == nullptr) return 0;
  {
    const Lock lock(&slot->mutex, &slot->broken);
    if (lock.error()) return lock.error();
    if (!slot->holds(log_id)) return 0;
    slot->used = 0;
  }
  slot->announce();
  return 0;
}

void SharedSequencer::announce(uint32_t key) { region_->slots[key % kSlots].announce(); }

uint32_t SharedSequencer::changes(uint32_t key) const {
  return region_->slots[key % kSlots].changes;
}

bool SharedSequencer::wait_for_change(uint32_t key, std::chrono::milliseconds timeout,
                                      uint32_t* seen) {
  Slot& slot = region_->slots[key % kSlots];
  const uint32_t before = std::exchange(*seen, slot.changes.load());
  if (*seen == before) {
    slot.wait(before, timeout);
    *seen = slot.changes;
  }
  return *seen != before;
}

int SharedSequencer::WriterLock::take(SharedSequencer* shared, bool wait) {
  pthread_mutex_t* mutex = &shared->region_->writing;
  int error = wait ? ::pthread_mutex_lock(mutex) : ::pthread_mutex_trylock(mutex);
  if (error == EOWNERDEAD) error = ::pthread_mutex_consistent(mutex);
  if (error == 0) shared_ = shared;
  return -error;
}

void SharedSequencer::WriterLock::release() {
  if (shared_ != nullptr) ::pthread_mutex_unlock(&shared_->region_->writing);
  shared_ = nullptr;
}

bool SharedSequencer::belongs_to(std::string_view incarnation, uint64_t transactions) const {
  const uint64_t noted = region_->transactions;
  return noted == 0 || (noted <= transactions &&
                        incarnation == std::string_view(region_->incarnation, kIncarnationBytes));
}

void SharedSequencer::note(std::string_view incarnation, uint64_t transactions) {
  uint64_t noted = region_->transactions;
  if (noted == 0) incarnation.copy(region_->incarnation, kIncarnationBytes);
  while (noted < transactions &&
         !region_->transactions.compare_exchange_weak(noted, transactions)) {
  }
}

void SharedSequencer::forget() { region_->transactions = 0; }

// Returns the slot of a log, or nullptr. Takes no locks, so a caller must call holds() again after
// it has locked the slot. The search begins at the log's own index, and passes free slots because
// slots before the log's may have been freed.
SharedSequencer::Slot* SharedSequencer::find(uint64_t log_id) const {
  for (uint32_t i = 0; i < kSlots; i++) {
    Slot& slot = region_->slots[(log_id + i) % kSlots];
    if (slot.holds(log_id)) return &slot;
  }
  return nullptr;
}

// Finds the log's slot or gives it a free one.
int SharedSequencer::claim(uint64_t log_id, Slot** slot) {
  uint32_t half_claimed = 0;  // harmless: a slot counts from the moment when `used` is set
  const Lock claiming(&region_->claiming, &half_claimed);
  if (claiming.error()) return claiming.error();
  *slot = find(log_id);
  for (uint32_t i = 0; *slot == nullptr && i < kSlots; i++) {
    Slot& candidate = region_->slots[(log_id + i) % kSlots];
    if (candidate.used == 0) *slot = &candidate;
  }
  if (*slot == nullptr) return -ENOSPC;
  const Lock lock(&(*slot)->mutex, &(*slot)->broken);
  if (lock.error()) return lock.error();
  if ((*slot)->used == 0) {
    (*slot)->epoch = 0;
    (*slot)->tail = 0;
    (*slot)->broken = 0;
    (*slot)->log_id = log_id;
    (*slot)->used = 1;  // last: the search sees whole slots only
  }
  return 0;
}

}  // namespace zlog
