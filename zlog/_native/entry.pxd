cimport cython
from libc.stdint cimport uint64_t
from libcpp.string_view cimport string_view

from zlog._native.host cimport bytes_of


@cython.final
cdef class Entry:
    cdef uint64_t at
    cdef uint64_t us
    cdef readonly bytes data
    cdef readonly tuple tags  # tuple[str, ...]

    cdef tuple fields(self)


cdef inline Entry new_entry(uint64_t position, string_view data, uint64_t us, tuple tags):
    cdef Entry entry = Entry.__new__(Entry)
    entry.at, entry.us, entry.tags = position, us, tags
    entry.data = bytes_of(data)
    return entry
