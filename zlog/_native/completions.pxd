from libcpp.memory cimport shared_ptr
from libcpp.string_view cimport string_view
from posix.types cimport pid_t

from zlog._native.host cimport CppBuffer, CppCompletionQueue


cdef class Payload:
    cdef CppBuffer buffer


# A reply in Python: bytes if it is small, or else a Payload.
cdef object reply_of(const CppBuffer& reply)

# The bytes of a reply, valid as long as the object is. TypeError if it is not a reply.
cdef string_view reply_view(reply) except *

# The object that keeps the data of a decoded reply: the reply, unless its data was decompressed.
cdef object keeper(reply, const CppBuffer& plain)

# Raises the error for a reply, or another `what`, that could not be decoded (wire::Decoded).
cdef int well_formed(int decoded, str what) except -1


# A wait that may miss a signal is divided into slices of this length, since the signal may have
# come just before the wait.
cdef enum:
    SLICE_MS = 100


# A timeout that is spent in slices. Signals are checked between the slices.
cdef class Wait:
    cdef object deadline

    cdef int slice_ms(self, int most) except -1
    cdef bint over(self) except -1


cdef class CompletionQueue:
    cdef shared_ptr[CppCompletionQueue] queue
    cdef pid_t pid

    cdef int check_process(self) except -1
