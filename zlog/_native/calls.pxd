from libc.stdint cimport uint64_t

from zlog._native.completions cimport CompletionQueue


cdef class Calls:
    cdef object loop
    cdef readonly object handle  # object
    cdef object under_way  # gives the calls up
    cdef readonly object replies  # list[Reply]
    cdef Py_ssize_t left  # how many replies are missing
    cdef object over  # the future that finish() waits for
    cdef object callback  # called instead

    cdef int expect(self, Py_ssize_t count) except -1
    # Waits for the missing replies no longer.
    cdef int give_up(self) except -1
    # Called once all replies have come, or the handle is being closed.
    cdef int end(self) except -1


cdef class Completions:
    cdef object loop
    cdef object world
    cdef CompletionQueue queue
    cdef Py_ssize_t handles
    cdef uint64_t groups
    cdef dict waiting  # dict[int, Calls]

    # Starts calls whose replies are expected.
    cdef int start(self, Calls calls, start) except -1
