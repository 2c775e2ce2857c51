# Replies of the methods that carry data (cls_zlog/wire/read_reply.h); messages.pyx has the others.

include "positions.pxi"

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libcpp.memory cimport unique_ptr
from libcpp.optional cimport optional
from libcpp.string cimport string
from libcpp.string_view cimport string_view

from typing import NamedTuple

from zlog.errors import CorruptEntry, UnsupportedVersion


cdef extern from "cls_zlog/base/crc32c.h" namespace "zlog" nogil:
    uint32_t cpp_crc32c "zlog::crc32c"(string_view data, uint32_t seed)

cdef extern from "cls_zlog/client/newest.h" namespace "zlog" nogil:
    optional[size_t] cpp_newest "zlog::newest"(const string& name, const vector[string]& values)

cdef extern from "cls_zlog/wire/frame.h" namespace "zlog::wire" nogil:
    ctypedef int Decoded "zlog::wire::Decoded"
    Decoded decode_message "zlog::wire::decode"[T](string_view bytes, T* out) except +

cdef extern from "cls_zlog/wire/stripe_messages.h" namespace "zlog" nogil:
    cdef cppclass Fullness:
        uint32_t records
        uint64_t bytes

cdef extern from "cls_zlog/client/blocks.h" namespace "zlog" nogil:
    CppBuffer open_blocks(CppReadReply* reply) except +

cdef extern from "cls_zlog/client/mac.h" namespace "zlog" nogil:
    cdef cppclass CppMacKey "zlog::MacKey":
        CppMacKey()
        CppMacKey(string_view key) except +
        cbool known()

cdef extern from "cls_zlog/wire/read_reply.h" namespace "zlog" nogil:
    # Its enumerations are read as the bytes that they are on the wire.
    cdef cppclass Column[T]:
        T operator[](uint32_t i)

cdef extern from "cls_zlog/client/taken_reply.h" namespace "zlog" nogil:
    cdef uint8_t forged_state

    cdef cppclass CppReadReply "zlog::TakenReply":
        const CppMacKey* mac
        uint32_t count
        cbool with_ids
        Column[uint64_t] timestamps
        Column[uint64_t] numbers
        string_view data_of(uint32_t i)
        string_view writer_of(uint32_t i)
        uint8_t reason_of "reason_of"(uint32_t i)
        void states_at(const uint64_t* positions, uint8_t* out) except +
        void states_of(uint64_t first, const Spacing& spacing, uint8_t* out) except +


FORGED = <int> forged_state


# The key of one log's MACs. It can't be got out again, printed or pickled. Made of None it says that
# the log has MACs and the client has no key: entries are counted, and their data is withheld.
@cython.final
cdef class MacKey:
    cdef unique_ptr[CppMacKey] key

    def __init__(self, bytes key):
        if key is None:
            self.key.reset(new CppMacKey())
        else:
            self.key.reset(new CppMacKey(view_of(key)))

    def __reduce__(self):
        raise TypeError("the key of a log can't be pickled or copied")


cdef const CppMacKey* mac_of(MacKey mac) noexcept:
    if mac is None:
        return NULL
    return mac.key.get()


# A large reply, where the store put it: a read-only bytes-like object.
cdef class Payload:
    cdef CppBuffer buffer

    def __len__(self):
        return <Py_ssize_t> self.buffer.bytes.size()

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(
            view,
            self,
            <void*> self.buffer.bytes.data(),
            <Py_ssize_t> self.buffer.bytes.size(),
            True,
            flags,
        )


# Below this, copying a reply is cheaper than keeping it.
cdef enum:
    PAYLOAD_BYTES_MIN = 4096


cdef object reply_of(const CppBuffer& reply):
    cdef Payload kept
    if reply.bytes.size() < PAYLOAD_BYTES_MIN:
        return bytes_of(reply.bytes)
    kept = Payload.__new__(Payload)
    kept.buffer = reply
    return kept


# The bytes of a reply, valid as long as the object is.
cdef string_view reply_view(reply) except *:
    if isinstance(reply, Payload):
        return (<Payload> reply).buffer.bytes
    if not isinstance(reply, bytes):
        raise TypeError(f"a reply is bytes, not {type(reply).__name__}")
    return view_of(<bytes> reply)


# The bytes of a Python object, valid as long as the object is.
cdef inline string_view view_of(bytes data) noexcept:
    return string_view(PyBytes_AS_STRING(data), <size_t> PyBytes_GET_SIZE(data))


cdef inline bytes bytes_of(string_view data):
    return PyBytes_FromStringAndSize(data.data(), <Py_ssize_t> data.size())


cdef int well_formed(int decoded, str what) except -1:
    if decoded == 2:
        raise UnsupportedVersion(f"a newer version of zlog made the {what} reply that was read")
    if decoded != 0:
        raise CorruptEntry(f"the store answered with a malformed {what} reply")
    return 0


# A reply to a read of `asked` positions of a log with such MACs, with its blocks decompressed into
# `plain`. The key is used while states are asked for.
cdef int decode_read_reply(
    string_view reply, uint64_t asked, const CppMacKey* mac, CppReadReply* out, CppBuffer* plain
) except -1 nogil:
    cdef int decoded = <int> decode_message(reply, out)
    out.mac = mac
    if decoded == 0 and out.count <= asked:
        plain[0] = open_blocks(out)
        return 0
    return 1 if decoded == 0 else decoded


# What keeps the data of a decoded reply.
cdef object keeper(reply, const CppBuffer& plain):
    cdef Payload kept
    if plain.bytes.data() == NULL:
        return reply
    kept = Payload.__new__(Payload)
    kept.buffer = plain
    return kept


def crc32c(data, uint32_t seed=0):
    cdef const uint8_t[::1] buffer = data
    if buffer.shape[0] == 0:
        return seed
    return cpp_crc32c(string_view(<const char*> &buffer[0], <size_t> buffer.shape[0]), seed)


def fullest(replies not None):
    cdef Fullness fullness
    cdef uint32_t records = 0
    cdef uint64_t size = 0
    for _, payload in replies:
        if <int> decode_message(reply_view(payload), &fullness) == 0:
            records, size = max(records, fullness.records), max(size, fullness.bytes)
    return records, size


cdef class ReadReply:
    cdef object reply  # what `decoded` points into
    cdef MacKey mac  # the same
    cdef CppBuffer plain  # the same, for data that was in blocks
    cdef CppReadReply decoded
    cdef vector[uint8_t] states

    def __len__(self):
        return self.decoded.count

    @property
    def count(self):
        return self.decoded.count

    cdef uint32_t at(self, Py_ssize_t i) except? 0:
        if not 0 <= i < <Py_ssize_t> self.decoded.count:
            raise IndexError(f"entry {i} of {self.decoded.count}")
        return <uint32_t> i

    cdef uint32_t at_id(self, Py_ssize_t i) except? 0:
        if not self.decoded.with_ids:
            raise ValueError("the read was made without with_ids")
        return self.at(i)

    def state(self, Py_ssize_t i):
        return self.states[self.at(i)]

    def taken_end(self):
        cdef size_t end = self.states.size()
        while end > 0 and self.states[end - 1] == 1:
            end -= 1
        return end

    def timestamp(self, Py_ssize_t i):
        return self.decoded.timestamps[self.at(i)]

    def data(self, Py_ssize_t i):
        # Of an entry whose checksum is wrong the bytes are there, and are not the entry.
        cdef uint32_t at = self.at(i)
        return bytes_of(self.decoded.data_of(at)) if self.states[at] == 0 else b""

    def writer(self, Py_ssize_t i):
        return bytes_of(self.decoded.writer_of(self.at_id(i)))

    def number(self, Py_ssize_t i):
        return self.decoded.numbers[self.at_id(i)]

    def reason(self, Py_ssize_t i):
        return <uint8_t> self.decoded.reason_of(self.at_id(i))


def decode_read(reply not None, positions, MacKey mac):
    cdef ReadReply out = ReadReply.__new__(ReadReply)
    cdef vector[uint64_t] asked = positions_of(positions)
    cdef string_view content = reply_view(reply)
    cdef const CppMacKey* key = mac_of(mac)
    cdef int result
    out.reply, out.mac = reply, mac
    with nogil:
        result = decode_read_reply(content, asked.size(), key, &out.decoded, &out.plain)
        if result == 0:
            out.states.resize(out.decoded.count)
            out.decoded.states_at(asked.data(), out.states.data())
    well_formed(result, "read")
    return out


def newest(bytes name not None, values):
    cdef optional[size_t] found = cpp_newest(name, values)
    return found.value() if found.has_value() else None
