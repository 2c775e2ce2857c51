"""Encodes writes, and manages the memory of their requests."""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.operator cimport dereference as deref
from libc.stdint cimport uint32_t, uint64_t
from libcpp.memory cimport make_shared, shared_ptr
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from zlog._native.host cimport RequestBytes, view_of
from zlog._native.new_entries cimport EntryColumn, Tagged, TagsTaken, data_of, tags_taken
from zlog._native.replies cimport MacKey, mac_of
from zlog._native.striping cimport striping_of

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zlog._native.new_entries import entries_owned

if TYPE_CHECKING:
    from typing_extensions import Buffer


cdef class NewEntries:
    pass


# The request to one object. It is encoded only when a store takes it, so that it is still in the
# processor's cache when it is sent. The cache may be too small for all requests of a round.
cdef class Request:
    """A request that is encoded when a store takes it, and is sent without a copy.

    Stores take it like ``bytes``, in one thread at a time. Its memory exists as long as a store
    needs it, even after the caller has given up the operation.
    """

    def __len__(self) -> int:
        encode(self)
        return self.payload.get().size()

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        encode(self)
        cdef RequestBytes* request = self.payload.get()
        PyBuffer_FillInfo(buffer, self, request.data(), <Py_ssize_t> request.size(), 1, flags)


cdef int encode(Request request) except -1 nogil:
    cdef shared_ptr[RequestBytes] payload
    if not request.payload:
        request.encoder.compress()
        payload = make_shared[RequestBytes](request.encoder.size())
        request.encoder.encode(deref(payload).data())
        request.payload = payload
    return 0


_COMPRESSIONS = {"none": <int> NO_COMPRESSION, "zstd": <int> ZSTD, "lz4": <int> LZ4}


cdef WriteHead write_head(
    uint64_t epoch, uint64_t timestamp, bytes writer, uint32_t striping, str compression, MacKey mac
) except *:
    cdef WriteHead head
    head.epoch, head.timestamp, head.writer = epoch, timestamp, view_of(writer)
    head.striping = striping_of(striping)
    if compression not in _COMPRESSIONS:
        raise ValueError(f"unknown compression {compression!r}")
    head.compression = <Compression> <int> _COMPRESSIONS[compression]
    head.tags = NULL
    head.append = NULL
    head.mac = mac_of(mac)
    if head.mac != NULL and not head.mac.known():
        raise ValueError("only clients with the log's key can write entries with MACs")
    return head


def encode_write(
    uint64_t epoch,
    uint64_t timestamp,
    bytes writer not None,
    uint32_t striping,
    positions: Sequence[int],
    numbers: Sequence[int],
    data: Sequence[Buffer | Tagged],
    str compression not None="none",
    MacKey mac=None,
) -> bytes:
    """Encode a write of entries, one per position, with their checksums.

    Args:
        epoch: the epoch of the writer's view.
        timestamp: µs since 1970-01-01 UTC.
        writer: the writer's id, 16 bytes.
        striping: the stripe's striping, packed.
        positions: ascending positions of one object, at most 65536.
        numbers: the number of each append, within 2**32 of each other. Together with ``writer``, a
            number identifies the append.
        data: the entries.
        compression: zstd or lz4; used for data that it makes smaller.
        mac: the key of the log's MACs; None if its entries have no MACs.

    Raises:
        ValueError: the write is not valid, or the key is not known.
    """
    cdef vector[CppNewEntry] entries
    cdef CppNewEntry entry
    cdef WriteEncoder encoder
    cdef list alive = []  # the objects that `entries` points into
    cdef TagsTaken tags
    cdef bytes out
    if not len(positions) == len(numbers) == len(data):
        raise ValueError("positions, numbers and data must have the same length")
    entries.reserve(len(positions))
    owned = entries_owned(data)
    for position, number, content in zip(positions, numbers, owned):
        entry.position, entry.number, entry.data = position, number, view_of(data_of(content))
        alive.append(content)
        entries.push_back(entry)
    head = write_head(epoch, timestamp, writer, striping, compression, mac)
    tags = tags_taken(owned)
    if tags is not None:
        head.tags = &tags.taken
    if encoder.begin(head, entries.data(), entries.size(), False, 0) != 0:
        raise ValueError(
            "not a valid write: positions must ascend within one object, numbers must differ by"
            " less than 2**32, the writer's id must have 16 bytes, and no limit may be exceeded"
        )
    with nogil:
        encoder.compress()
    out = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> encoder.size())
    encoder.encode(PyBytes_AS_STRING(out))
    return out


def encode_writes(
    uint64_t epoch,
    uint64_t timestamp,
    bytes writer not None,
    uint32_t striping,
    uint64_t position,
    uint64_t number,
    entries: Sequence[Buffer | Tagged],
    str compression not None="none",
    MacKey mac=None,
) -> list[tuple[int, Request]]:
    """Encode entries at consecutive positions, as one write per stripe object.

    The first entry has ``position`` and the append number ``number``; both ascend by one. When a
    store takes the request, the data is copied, authenticated, compressed and checksummed, without
    the interpreter's lock.

    Returns:
        ``(number of the stripe object, request)`` for each object that gets an entry.
    """
    cdef NewEntries taken = NewEntries.__new__(NewEntries)
    cdef Py_ssize_t count, i
    cdef uint64_t first
    cdef CppNewEntry entry
    cdef WriteHead head = write_head(epoch, timestamp, writer, striping, compression, mac)
    cdef Request request
    cdef EntryColumn column = None
    owned = entries_owned(entries)
    if isinstance(owned, EntryColumn):
        taken.alive = column = owned
    else:
        # A tuple, because the caller's list may change before everything is encoded.
        taken.alive = owned = tuple(owned)
    taken.mac = mac
    count = len(owned)
    taken.news.reserve(count)
    for i in range(count):
        entry.position, entry.number = position + i, number + i
        if column is not None:
            entry.data = string_view(column.data + column.ends[i], <size_t> column.size(i))
        else:
            entry.data = view_of(data_of((<tuple> owned)[i]))
        taken.news.push_back(entry)
    taken.tags = tags_taken(owned)
    if taken.tags is not None:
        head.tags = &taken.tags.taken
    out = []
    for first in head.striping.firsts(position, position + <uint64_t> count):
        request = Request.__new__(Request)
        request.entries = taken
        if request.encoder.begin(
            head,
            &taken.news[first - position],
            head.striping.count(first, position + <uint64_t> count),
            True,
            first - position,
        ) != 0:
            raise ValueError("the entries exceed the limits of one write")
        out.append((head.striping.residue(first), request))
    return out
