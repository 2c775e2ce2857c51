/* Loaded into a process by LD_PRELOAD, it keeps what would be lost if the power failed.
 *
 * Of the files whose paths end with one of the words in POWER_FILES it notes, before each write, what
 * stood there: in a journal for each file, in the folder POWER_JOURNALS, shared by all processes. A
 * sync of the file empties its journal. What power.py finds in a journal was never synced.
 *
 * A journal begins with where its records end, so that one that a dying process did not finish does not
 * count. A record is the offset, the number of bytes to be written, and how many stood there, which
 * are fewer at the end of the file; and those. A record of UINT64_MAX bytes says that all before its
 * offset in the journal is synced. All numbers have 64 bits.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define NEXT(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))

enum { SYNC_US = 3000 };

static int watched(const char* path) {
  const char* words = getenv("POWER_FILES");
  char copy[PATH_MAX], *rest = copy, *word;
  snprintf(copy, sizeof copy, "%s", words ? words : "");
  while ((word = strsep(&rest, ":")) != NULL) {
    const size_t length = strlen(path), ending = strlen(word);
    if (ending && length >= ending && strcmp(path + length - ending, word) == 0) return 1;
  }
  return 0;
}

/* The journal of a file, locked; -1 for a file that is not watched. */
static int journal_of(int fd) {
  char link[64], path[PATH_MAX], name[PATH_MAX + 64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return -1;
  path[length] = 0;
  if (!watched(path)) return -1;
  const char* folder = getenv("POWER_JOURNALS");
  if (folder == NULL) abort();
  for (char* at = path; *at; at++) {
    if (*at == '/') *at = '%';
  }
  snprintf(name, sizeof name, "%s/%s", folder, path);
  const int journal = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (journal < 0 || flock(journal, LOCK_EX) != 0) abort();
  return journal;
}

static uint64_t end_of(int journal) {
  uint64_t end = sizeof end;
  (void)!pread64(journal, &end, sizeof end, 0);
  return end;
}

static void set_end(int journal, uint64_t end) {
  if (NEXT(pwrite64)(journal, &end, sizeof end, 0) != sizeof end) abort();
}

static void append(int journal, uint64_t offset, uint64_t bytes, const void* former, uint64_t found) {
  const uint64_t head[3] = {offset, bytes, found}, end = end_of(journal);
  const struct iovec parts[2] = {{(void*)head, sizeof head}, {(void*)former, found}};
  const ssize_t size = (ssize_t)(sizeof head + found);
  if (NEXT(pwritev64)(journal, parts, 2, (off64_t)end) != size) abort();
  set_end(journal, end + (uint64_t)size);
}

/* Of a write that waits for the disk nothing is lost. */
static void before(int fd, uint64_t offset, uint64_t bytes) {
  if (fcntl(fd, F_GETFL) & O_DSYNC) return;
  const int journal = journal_of(fd);
  if (journal < 0) return;
  char link[64], *former = malloc(bytes + 1);
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const int reader = open(link, O_RDONLY | O_CLOEXEC);
  uint64_t found = 0;
  for (ssize_t got = 1; got > 0 && found < bytes; found += got > 0 ? (uint64_t)got : 0) {
    got = pread64(reader, former + found, bytes - found, (off64_t)(offset + found));
  }
  append(journal, offset, bytes, former, found);
  free(former);
  close(reader);
  close(journal);
}

static uint64_t total(const struct iovec* parts, int count) {
  uint64_t bytes = 0;
  for (int number = 0; number < count; number++) bytes += parts[number].iov_len;
  return bytes;
}

ssize_t write(int fd, const void* data, size_t bytes) {
  before(fd, (uint64_t)lseek(fd, 0, SEEK_CUR), bytes);
  return NEXT(write)(fd, data, bytes);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  before(fd, (uint64_t)lseek(fd, 0, SEEK_CUR), total(parts, count));
  return NEXT(writev)(fd, parts, count);
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  before(fd, (uint64_t)offset, bytes);
  return NEXT(pwrite)(fd, data, bytes, offset);
}

ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t offset) {
  before(fd, (uint64_t)offset, bytes);
  return NEXT(pwrite64)(fd, data, bytes, offset);
}

ssize_t pwritev64(int fd, const struct iovec* parts, int count, off64_t offset) {
  before(fd, (uint64_t)offset, total(parts, count));
  return NEXT(pwritev64)(fd, parts, count, offset);
}

int io_submit(void* context, long count, struct iocb** blocks) {
  static int (*next)(void*, long, struct iocb**);
  if (next == NULL) next = (int (*)(void*, long, struct iocb**))dlsym(RTLD_NEXT, "io_submit");
  for (long number = 0; number < count; number++) {
    const struct iocb* block = blocks[number];
    uint64_t bytes = block->aio_nbytes;
    if (block->aio_lio_opcode == IOCB_CMD_PWRITEV) {
      bytes = total((const struct iovec*)(uintptr_t)block->aio_buf, (int)bytes);
    } else if (block->aio_lio_opcode != IOCB_CMD_PWRITE) {
      continue;
    }
    before((int)block->aio_fildes, (uint64_t)block->aio_offset, bytes);
  }
  return next(context, count, blocks);
}

/* What was noted before a sync began is durable after it. The disk is a slow one, so that the power
 * often fails in between. */
static int sync_by(int (*sync)(int), int fd) {
  int journal = journal_of(fd);
  const uint64_t end = journal < 0 ? 0 : end_of(journal);
  if (journal >= 0) close(journal);
  if (journal >= 0) usleep(SYNC_US);
  const int result = sync(fd);
  if (result != 0 || journal < 0) return result;
  journal = journal_of(fd);
  if (end_of(journal) == end) {
    set_end(journal, sizeof end);
  } else {
    append(journal, end, UINT64_MAX, NULL, 0);
  }
  close(journal);
  return result;
}

int fsync(int fd) { return sync_by(NEXT(fsync), fd); }

int fdatasync(int fd) { return sync_by(NEXT(fdatasync), fd); }
