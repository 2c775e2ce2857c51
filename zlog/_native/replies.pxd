cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from zlog._native.host cimport CppBuffer
from zlog._native.striping cimport Striping


cdef extern from "cls_zlog/wire/read_reply.h" namespace "zlog" nogil:
    # Its enumerations are read as bytes, as on the wire.
    cdef cppclass Column[T]:
        T operator[](uint32_t i)

    cdef cppclass CppStoredReply "zlog::ReadReply":
        pass

cdef extern from "cls_zlog/wire/tags.h" namespace "zlog" nogil:
    cdef cppclass CppTags "zlog::Tags":
        Column[uint32_t] ids
        cbool any()

    cdef cppclass CppTagsReader "zlog::TagsReader":
        CppTagsReader(const CppTags& tags) except +
        const vector[string_view]& names()
        const CppTags& tags()
        uint32_t begin_of(uint32_t i)
        uint32_t count_of(uint32_t i)

cdef extern from "cls_zlog/client/mac.h" namespace "zlog" nogil:
    cdef cppclass CppMacKey "zlog::MacKey":
        CppMacKey()
        CppMacKey(string_view key) except +
        cbool known()

cdef extern from "cls_zlog/client/taken_reply.h" namespace "zlog" nogil:
    cdef uint8_t forged_state

    cdef cppclass CppReadReply "zlog::TakenReply":
        CppReadReply()
        CppReadReply(const CppStoredReply& reply, const CppMacKey* key, cbool data)
        const CppMacKey* mac
        cbool with_data
        uint32_t count
        cbool with_ids
        Column[uint8_t] states
        Column[uint64_t] timestamps
        Column[uint64_t] numbers
        CppTags tags
        string_view data_of(uint32_t i)
        string_view writer_of(uint32_t i)
        uint8_t reason_of "reason_of"(uint32_t i)
        void states_at(const uint64_t* positions, uint8_t* out) except +
        void states_of(uint64_t first, const Striping& striping, uint8_t* out) except +

    CppBuffer open_blocks(CppReadReply* reply) except +


cdef enum:  # the states that the modules compare with; the last one is never stored
    WRITTEN = 0
    FILLED = 2
    TRIMMED = 3
    LOST = 4
    UNREADABLE = 5
    UNANSWERED = 255


@cython.final
cdef class MacKey:
    cdef unique_ptr[CppMacKey] key


cdef inline const CppMacKey* mac_of(MacKey mac) noexcept:
    if mac is None:
        return NULL
    return mac.key.get()


# The tags of a reply's entries, as tuples of str. Entries with the same single tag share a tuple.
cdef class TagTable:
    cdef unique_ptr[CppTagsReader] reader
    cdef list names
    cdef list alone

    cdef tuple of(self, uint32_t i)


cdef class ReadReply:
    cdef object reply  # `decoded` points into it
    cdef MacKey mac  # `decoded` points into it
    cdef CppBuffer plain  # `decoded` points into it if data was in blocks
    cdef CppReadReply decoded
    cdef vector[uint8_t] states
    cdef TagTable table  # made on first use

    cdef tuple tags_at(self, uint32_t i)
    cdef uint32_t at(self, Py_ssize_t i) except? 0
    cdef uint32_t at_id(self, Py_ssize_t i) except? 0


# Decodes the reply to a read of these positions. Without them, the object's from `first` on.
cdef ReadReply decoded_reply(
    reply, uint64_t asked, const uint64_t* positions, uint64_t first, Striping striping, MacKey mac,
    bint with_data
)
