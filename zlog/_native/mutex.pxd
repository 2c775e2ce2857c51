cdef unsigned int forks  # of the ancestors of this process, since they imported this

# Returns how many brief locks this thread holds.
cdef int brief_locks_held() noexcept


cdef class Mutex:
    cdef object lock
    cdef unsigned long owner
    cdef int depth  # how often its owner has taken it
    cdef unsigned int born
    cdef bint brief
    cdef bint reentrant

    cdef bint wait(self, double timeout) except -1
