# Requests and replies of the methods on a stripe object (cls_zlog/wire/messages.h).

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.string cimport string
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from typing import NamedTuple

from zlog.errors import CorruptEntry


cdef extern from "cls_zlog/base/crc32c.h" namespace "zlog" nogil:
    uint32_t cpp_crc32c "zlog::crc32c"(string_view data, uint32_t seed)

cdef extern from "cls_zlog/wire/runs.h" namespace "zlog" nogil:
    cdef cppclass Runs:
        Runs()
        @staticmethod
        cbool of(uint32_t stride, const vector[uint64_t]& positions, Runs* out) except +

cdef extern from "cls_zlog/wire/messages.h" namespace "zlog" nogil:
    int decode_epoch_reply(string_view reply, uint64_t* epoch)
    int decode_position_reply(string_view reply, uint64_t* position)
    int decode_more_reply(string_view reply, cbool* more)

    cdef cppclass Highest:
        cbool has
        uint64_t position
        @staticmethod
        int decode(string_view reply, Highest* out)

    cdef cppclass Fullness:
        uint32_t records
        uint64_t bytes
        @staticmethod
        int decode(string_view reply, Fullness* out)

    cdef cppclass SealReply:
        Highest highest
        Fullness fullness
        @staticmethod
        int decode(string_view reply, SealReply* out)

    cdef cppclass EpochRequest:
        uint64_t epoch
        string encode() except +

    cdef cppclass SealRequest:
        uint64_t epoch
        uint32_t stride
        uint32_t residue
        cbool create
        string encode() except +

    cdef cppclass ReadRequest:
        uint64_t epoch
        cbool with_ids
        uint32_t bytes_max
        Runs runs
        string encode() except +

    # Its enumerations are read as the bytes that they are on the wire.
    cdef cppclass Column[T]:
        T operator[](uint32_t i)

    cdef cppclass CppReadReply "zlog::ReadReply":
        Highest highest
        uint32_t count
        cbool with_ids
        Column[uint64_t] timestamps
        Column[uint64_t] numbers
        Column[uint8_t] reasons
        string_view data_of(uint32_t i)
        string_view writer_of(uint32_t i)
        uint8_t state_of "state_of"(uint32_t i, uint64_t position)
        void states_of(uint64_t first, uint32_t stride, uint8_t* out)
        @staticmethod
        int decode(string_view reply, cbool with_ids, uint32_t asked, CppReadReply* out) except +

    ctypedef uint8_t CppFillReason "zlog::FillReason"

    cdef cppclass FillRequest:
        uint64_t epoch
        uint64_t timestamp
        string_view writer
        CppFillReason reason
        Runs runs
        string encode() except +

    cdef cppclass TrimRequest:
        uint64_t epoch
        Runs runs
        string encode() except +

    cdef cppclass TrimToRequest:
        uint64_t epoch
        uint64_t position
        uint32_t records_max
        string encode() except +

    cdef cppclass CppStatReply "zlog::StatReply":
        uint64_t object_epoch
        Highest highest
        uint64_t trim_point
        uint64_t entries
        uint64_t bytes
        uint64_t records
        uint64_t stream_bytes
        uint32_t stride
        uint32_t residue
        @staticmethod
        int decode(string_view reply, CppStatReply* out)


# A large reply, where the store put it: a bytes-like object that nobody can change.
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


cdef int well_formed(int result, str what) except -1:
    if result != 0:
        raise CorruptEntry(f"the store answered with a malformed {what} reply")
    return 0


cdef vector[uint64_t] positions_of(positions) except *:
    cdef vector[uint64_t] out
    cdef uint64_t first, i
    cdef long long step
    cdef Py_ssize_t count = len(positions)
    out.reserve(count)
    if isinstance(positions, range) and count > 0 and positions.step > 0:
        first, step = positions.start, positions.step
        positions[-1].to_bytes(8, "little")  # OverflowError when the last one is no uint64
        for i in range(<uint64_t> count):
            out.push_back(first + i * <uint64_t> step)
    else:
        for position in positions:
            out.push_back(position)
    return out


cdef Runs runs_of(uint32_t stride, positions) except *:
    cdef Runs runs
    if not Runs.of(stride, positions_of(positions), &runs):
        raise ValueError(
            f"positions must ascend, be congruent modulo the stride {stride} and at most 65536"
        )
    return runs


def crc32c(data, uint32_t seed=0):
    cdef const uint8_t[::1] buffer = data
    if buffer.shape[0] == 0:
        return seed
    return cpp_crc32c(string_view(<const char*> &buffer[0], <size_t> buffer.shape[0]), seed)


def encode_seal(uint64_t epoch, uint32_t stride, uint32_t residue, bint create):
    cdef SealRequest request
    request.epoch, request.stride, request.residue, request.create = epoch, stride, residue, create
    return request.encode()


def decode_seal(reply not None):
    cdef SealReply out
    well_formed(SealReply.decode(reply_view(reply), &out), "seal")
    highest = out.highest.position if out.highest.has else None
    return highest, out.fullness.records, out.fullness.bytes


def fullest(replies not None):
    cdef Fullness fullness
    cdef uint32_t records = 0
    cdef uint64_t size = 0
    for _, payload in replies:
        well_formed(Fullness.decode(reply_view(payload), &fullness), "write")
        records, size = max(records, fullness.records), max(size, fullness.bytes)
    return records, size


def decode_highest(reply not None):
    cdef Highest highest
    well_formed(Highest.decode(reply_view(reply), &highest), "highest position")
    return highest.position if highest.has else None


def decode_epoch(reply not None):
    cdef uint64_t epoch = 0
    well_formed(decode_epoch_reply(reply_view(reply), &epoch), "epoch")
    return epoch


def decode_position(reply not None):
    cdef uint64_t position = 0
    well_formed(decode_position_reply(reply_view(reply), &position), "position")
    return position


def decode_more(reply not None):
    cdef cbool more = False
    well_formed(decode_more_reply(reply_view(reply), &more), "trim_to")
    return bool(more)


def encode_read(
    uint64_t epoch, uint32_t stride, positions, uint32_t bytes_max, bint with_ids=False
):
    cdef ReadRequest request
    request.epoch, request.with_ids, request.bytes_max = epoch, with_ids, bytes_max
    request.runs = runs_of(stride, positions)
    return request.encode()


cdef class ReadReply:
    cdef object reply  # what `decoded` points into
    cdef CppReadReply decoded
    cdef vector[uint8_t] states

    def __len__(self):
        return self.decoded.count

    @property
    def count(self):
        return self.decoded.count

    @property
    def highest(self):
        return self.decoded.highest.position if self.decoded.highest.has else None

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
        return self.decoded.reasons[self.at_id(i)]


def decode_read(reply not None, positions, bint with_ids=False):
    cdef ReadReply out = ReadReply.__new__(ReadReply)
    cdef vector[uint64_t] asked = positions_of(positions)
    cdef uint32_t i
    out.reply = reply
    well_formed(
        CppReadReply.decode(reply_view(reply), with_ids, <uint32_t> asked.size(), &out.decoded), "read"
    )
    out.states.reserve(out.decoded.count)
    for i in range(out.decoded.count):
        out.states.push_back(<uint8_t> out.decoded.state_of(i, asked[i]))
    return out


def encode_fill(
    uint64_t epoch,
    uint64_t timestamp,
    bytes writer not None,
    uint8_t reason,
    uint32_t stride,
    positions,
):
    cdef FillRequest request
    request.epoch, request.timestamp = epoch, timestamp
    request.writer, request.reason = view_of(writer), <CppFillReason> reason
    request.runs = runs_of(stride, positions)
    if len(writer) != 16:
        raise ValueError("a writer's id has 16 bytes")
    return request.encode()


def encode_trim(uint64_t epoch, uint32_t stride, positions):
    cdef TrimRequest request
    request.epoch, request.runs = epoch, runs_of(stride, positions)
    return request.encode()


def encode_trim_to(uint64_t epoch, uint64_t position, uint32_t records_max):
    cdef TrimToRequest request
    request.epoch, request.position, request.records_max = epoch, position, records_max
    return request.encode()


def encode_epoch(uint64_t epoch):
    cdef EpochRequest request
    request.epoch = epoch
    return request.encode()


class StatReply(NamedTuple):
    object_epoch: int
    highest: int | None
    trim_point: int
    entries: int
    bytes: int
    records: int
    stream_bytes: int
    stride: int
    residue: int


def decode_stat(reply not None):
    cdef CppStatReply stat
    well_formed(CppStatReply.decode(reply_view(reply), &stat), "stat")
    return StatReply(
        stat.object_epoch,
        stat.highest.position if stat.highest.has else None,
        stat.trim_point,
        stat.entries,
        stat.bytes,
        stat.records,
        stat.stream_bytes,
        stat.stride,
        stat.residue,
    )
