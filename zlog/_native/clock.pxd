# The monotonic clock, read without Python.

from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec


cdef inline double monotonic_seconds() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + 1e-9 * now.tv_nsec
