cimport cython
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int32_t, uint32_t
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef extern from "cls_zlog/client/write_encoder.h" namespace "zlog" nogil:
    cdef cppclass EntryTags:
        vector[string] names
        vector[uint32_t] begins
        vector[uint32_t] ids


@cython.final
cdef class Tagged:
    cdef readonly bytes data
    cdef readonly tuple tags  # tuple[str, ...]


@cython.final
cdef class EntryLimit:
    cdef public Py_ssize_t bytes_max


cdef enum:
    ENTRY_TAGS_MAX = 64
    TAG_BYTES_MAX = 128
    TAG_NAMES_BYTES_MAX = 1 << 20  # of one write
    TAG_IDS_MAX = 1 << 18

# Returns a view of a bytes-like entry. Raises TypeError if it is not bytes-like.
cdef object buffer_of(item)

# Returns an entry with these tags, or `data` itself if there are none.
cdef object new_tagged(data, tuple tags)


cdef inline bytes data_of(item):
    return (<Tagged> item).data if type(item) is Tagged else <bytes> item


# Returns the maximum number of bytes that an entry's tags take in its request.
cdef inline Py_ssize_t tags_size(Tagged item) except -1:
    cdef Py_ssize_t size = 0, length
    for tag in item.tags:
        PyUnicode_AsUTF8AndSize(tag, &length)
        size += length + 1
    return size


@cython.final
cdef class EntryColumn:
    cdef object keeper  # the object that owns the memory that these point into
    cdef const int32_t* ends  # count + 1 ends: each entry begins where the previous one ends
    cdef const char* data
    cdef Py_ssize_t count

    cdef Py_ssize_t size(self, Py_ssize_t i) noexcept


# Gathers the tags of entries one after another.
cdef class TagsTaken:
    cdef EntryTags taken
    cdef dict ids
    cdef object last  # the last tags, whose place is reused if they are repeated
    cdef size_t last_begin
    cdef size_t last_end

    cdef int add(self, object tags) except -1


# Returns the tags of owned entries, or None if no entry has any.
cdef TagsTaken tags_taken(owned)
