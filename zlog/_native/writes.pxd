from libc.stdint cimport uint32_t, uint64_t
from libcpp.memory cimport shared_ptr
from libcpp.optional cimport optional
from libcpp.string cimport string
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from zlog._native.new_entries cimport EntryTags, TagsTaken
from zlog._native.host cimport RequestBytes
from zlog._native.replies cimport CppMacKey, MacKey
from zlog._native.striping cimport Striping


cdef extern from "cls_zlog/base/codes.h" namespace "zlog" nogil:
    ctypedef enum Compression "zlog::Compression":
        NO_COMPRESSION "zlog::Compression::kNone"
        ZSTD "zlog::Compression::kZstd"
        LZ4 "zlog::Compression::kLz4"

cdef extern from "cls_zlog/wire/append_messages.h" namespace "zlog" nogil:
    void append_name(string_view name, string* out) except +

    cdef cppclass TagSet:
        string names

    cdef cppclass CppAppendPart "zlog::AppendPart":
        uint32_t entries
        optional[uint64_t] expect
        uint64_t start
        vector[TagSet] unless

cdef extern from "cls_zlog/client/write_encoder.h" namespace "zlog" nogil:
    cdef cppclass AppendHead:
        uint64_t since
        vector[CppAppendPart] parts

    cdef cppclass CppNewEntry "zlog::NewEntry":
        uint64_t position
        uint64_t number
        string_view data

    cdef cppclass WriteHead:
        const EntryTags* tags
        uint64_t epoch
        uint64_t timestamp
        string_view writer
        Striping striping
        Compression compression
        const CppMacKey* mac
        const AppendHead* append

    cdef cppclass WriteEncoder:
        int begin(
            const WriteHead& head,
            const CppNewEntry* entries,
            size_t count,
            bint in_a_row,
            size_t index,
        ) except +
        void compress() except +
        size_t size()
        void encode(char* out) except +


# Entries that are being encoded, and the objects whose memory they point into.
cdef class NewEntries:
    cdef object alive
    cdef TagsTaken tags
    cdef MacKey mac
    cdef vector[CppNewEntry] news


cdef class Request:
    cdef NewEntries entries
    cdef WriteEncoder encoder
    cdef shared_ptr[RequestBytes] payload  # null before the request is encoded


cdef WriteHead write_head(
    uint64_t epoch, uint64_t timestamp, bytes writer, uint32_t striping, str compression, MacKey mac
) except *


# Encodes a request if it is not encoded yet. Returns a code, so that the caller can check for an
# error without taking the interpreter's lock.
cdef int encode(Request request) except -1 nogil
