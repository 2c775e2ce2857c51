/* Loaded into a process by LD_PRELOAD, it makes the wall clock wrong by CLOCK_SECONDS. libfaketime does
 * more, and some of its versions wait for themselves in a program with tcmalloc, as Ceph's are. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec* now) {
  const long result = syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    now->tv_sec += atol(getenv("CLOCK_SECONDS"));
  }
  return (int)result;
}
