from libcpp.memory cimport shared_ptr
from libcpp.string_view cimport string_view
from posix.types cimport pid_t

from zlog._native.host cimport CppBuffer, CppCompletionQueue


cdef class Payload:
    cdef CppBuffer buffer


# Returns a reply as a Python object: bytes if it is small, or else a Payload.
cdef object reply_of(const CppBuffer& reply)

# Returns the bytes of a reply, valid as long as the object is. Raises TypeError for other objects.
cdef string_view reply_view(reply) except *

# Returns the object that owns a decoded reply's data: the reply, unless it was decompressed.
cdef object keeper(reply, const CppBuffer& plain)

# Raises the error if a reply, or another `what`, could not be decoded (wire::Decoded).
cdef int well_formed(int decoded, str what) except -1


# A wait is divided into slices of this length. It could otherwise miss a signal that came just
# before the wait.
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
