cimport cython
from libc.stdint cimport uint64_t
from libcpp.string_view cimport string_view

from zlog._native.host cimport bytes_of, view_of


@cython.final
cdef class Entry:
    cdef uint64_t at
    cdef uint64_t us
    cdef string_view content  # the data
    cdef object owner  # the data as bytes, or the reply that contains it
    cdef readonly tuple tags  # tuple[str, ...]


cdef inline Entry new_entry(uint64_t position, string_view data, uint64_t us, tuple tags):
    cdef Entry entry = Entry.__new__(Entry)
    entry.at, entry.us, entry.tags = position, us, tags
    entry.content = data
    data_of(entry)
    return entry


# Returns the data as bytes. After this, the entry does not refer to a reply.
cdef inline bytes data_of(Entry entry):
    if not isinstance(entry.owner, bytes):
        entry.owner = bytes_of(entry.content)
        entry.content = view_of(<bytes> entry.owner)
    return <bytes> entry.owner
