cdef class Submitted:
    cdef object __weakref__
    cdef object loop
    cdef bint over
    cdef bint seen  # whether its error, if any, was retrieved
    cdef public bint _asyncio_future_blocking
    cdef list callbacks
    cdef object position
    cdef object error

    # Sets the position or the error. Returns False, and does nothing, if the future is done.
    cdef bint complete(self, position, error) except -1
