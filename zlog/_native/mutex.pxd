cdef unsigned int forks  # the number of forks since the import that led to this process

# Returns how many brief locks this thread holds.
cdef int brief_locks_held() noexcept


cdef class Mutex:
    cdef object lock
    cdef unsigned long owner
    cdef int depth  # how many times its owner has acquired it
    cdef unsigned int born
    cdef bint brief
    cdef bint reentrant

    cdef bint wait(self, double timeout) except -1
