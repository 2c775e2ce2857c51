# Writes: encoding entries, and the memory that a request keeps until the store is done with it.

from cython.operator cimport dereference as deref
from libc.stdint cimport int32_t
from libcpp.memory cimport make_shared, shared_ptr

from collections.abc import Sequence

cdef extern from "Python.h":
    Py_buffer* PyMemoryView_GET_BUFFER(object view)


cdef extern from "cls_zlog/base/codes.h" namespace "zlog" nogil:
    ctypedef enum Compression "zlog::Compression":
        NO_COMPRESSION "zlog::Compression::kNone"
        ZSTD "zlog::Compression::kZstd"
        LZ4 "zlog::Compression::kLz4"

cdef extern from "cls_zlog/client/write_encoder.h" namespace "zlog" nogil:
    cdef cppclass NewEntry:
        uint64_t position
        uint64_t number
        string_view data

    cdef cppclass WriteHead:
        const EntryTags* tags
        uint64_t epoch
        uint64_t timestamp
        string_view writer
        Spacing spacing
        Compression compression
        const CppMacKey* mac

    cdef cppclass WriteEncoder:
        int begin(
            const WriteHead& head,
            const NewEntry* entries,
            size_t count,
            bint in_a_row,
            size_t index,
        ) except +
        void compress() except +
        size_t size()
        void encode(char* out) except +


cdef inline bytes data_of(item):
    return (<Tagged> item).data if type(item) is Tagged else <bytes> item


cdef object buffer_of(item):
    if isinstance(item, str):
        raise TypeError("an entry is bytes, not str: encode it first, as in text.encode()")
    try:
        return memoryview(item)
    except TypeError:
        raise TypeError(f"an entry is bytes, not {item!r}") from None


# Entries that lie one after the other, as in a column of Arrow: no object for each of them.
@cython.final
cdef class EntryColumn:
    cdef object keeper  # of the memory that these point into
    cdef const int32_t* ends  # count + 1 of them: each entry begins where the one before it ends
    cdef const char* data
    cdef Py_ssize_t count

    def __init__(self, offsets, data):
        cdef memoryview ends = memoryview(offsets), content = memoryview(data)
        cdef Py_buffer* of_ends = PyMemoryView_GET_BUFFER(ends)
        cdef Py_buffer* of_content = PyMemoryView_GET_BUFFER(content)
        cdef Py_ssize_t i
        if not ends.c_contiguous or not content.c_contiguous or of_ends.len % 4 or not of_ends.len:
            raise ValueError("a column is made of (n + 1) × int32, and bytes")
        self.keeper = (ends, content)
        self.ends, self.data = <const int32_t*> of_ends.buf, <const char*> of_content.buf
        self.count = of_ends.len // 4 - 1
        for i in range(self.count):
            if self.ends[i] > self.ends[i + 1]:
                raise ValueError("a column's offsets ascend")
        if self.ends[0] < 0 or self.ends[self.count] > of_content.len:
            raise ValueError("a column's offsets lie in its data")

    def __len__(self):
        return self.count

    def __getitem__(self, which):
        cdef EntryColumn part
        cdef Py_ssize_t i
        if isinstance(which, slice):
            start, stop, step = which.indices(self.count)
            if step != 1:
                raise ValueError("a part of a column is made of entries in a row")
            part = EntryColumn.__new__(EntryColumn)
            part.keeper, part.data = self.keeper, self.data
            part.ends, part.count = self.ends + <Py_ssize_t> start, max(0, stop - start)
            return part
        i = which
        if not 0 <= i < self.count:
            raise IndexError("a column is counted from its beginning, up to its length")
        return PyBytes_FromStringAndSize(self.data + self.ends[i], self.size(i))

    cdef Py_ssize_t size(self, Py_ssize_t i) noexcept:
        return self.ends[i + 1] - self.ends[i]


Sequence.register(EntryColumn)


def entries_check(entries, Py_ssize_t bytes_max):
    cdef Py_ssize_t i, size
    if isinstance(entries, EntryColumn):
        for i in range((<EntryColumn> entries).count):
            size = (<EntryColumn> entries).size(i)
            if size > bytes_max:
                return i, size
        return None
    for i in range(len(entries)):
        item = entries[i]
        if type(item) is bytes:
            size = PyBytes_GET_SIZE(item)
        elif type(item) is Tagged:
            size = PyBytes_GET_SIZE((<Tagged> item).data)
        else:
            size = buffer_of(item).nbytes
        if size > bytes_max:
            return i, size
    return None


def entries_owned(entries):
    cdef Py_ssize_t i
    if isinstance(entries, EntryColumn):
        return entries
    for i in range(len(entries)):
        if type(entries[i]) is not bytes and type(entries[i]) is not Tagged:
            return [
                item if type(item) in (bytes, Tagged) else bytes(buffer_of(item))
                for item in entries
            ]
    return entries


def entries_cut(entries, Py_ssize_t start, Py_ssize_t count_max, Py_ssize_t bytes_max):
    cdef Py_ssize_t end = start, total = len(entries), left = bytes_max, size
    cdef bint in_column = isinstance(entries, EntryColumn)
    cdef Py_ssize_t names = TAG_NAMES_BYTES_MAX, ids = TAG_IDS_MAX
    last = None
    while end < total and end - start < count_max:
        if in_column:
            size = (<EntryColumn> entries).size(end)
        else:
            item = entries[end]
            if type(item) is bytes:
                size = PyBytes_GET_SIZE(item)
            elif type(item) is Tagged:
                size = PyBytes_GET_SIZE((<Tagged> item).data)
                ids -= len((<Tagged> item).tags)
                if (<Tagged> item).tags is not last:
                    last = (<Tagged> item).tags
                    names -= tags_size(item)
            else:
                size = memoryview(item).nbytes
        if (size > left or names < 0 or ids < 0) and end > start:
            break
        left -= size
        end += 1
    return end


# Entries on their way into requests, and the objects whose memory they point into.
cdef class NewEntries:
    cdef object alive
    cdef TagsTaken tags
    cdef MacKey mac
    cdef vector[NewEntry] news


# The request of one object. It is encoded when a store takes it, so that a store can send it while
# the processor still has it at hand: all requests of a round may be larger than its cache.
cdef class Request:
    cdef NewEntries entries
    cdef WriteEncoder encoder
    cdef shared_ptr[RequestBytes] payload  # null until it is encoded

    def __len__(self):
        encode(self)
        return self.payload.get().size()

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        encode(self)
        cdef RequestBytes* request = self.payload.get()
        PyBuffer_FillInfo(buffer, self, request.data(), <Py_ssize_t> request.size(), 1, flags)


# With a result that tells of errors: without, its caller takes the interpreter's lock to ask.
cdef int encode(Request request) except -1 nogil:
    cdef shared_ptr[RequestBytes] payload
    if not request.payload:
        request.encoder.compress()
        payload = make_shared[RequestBytes](request.encoder.size())
        request.encoder.encode(deref(payload).data())
        request.payload = payload
    return 0


cdef WriteHead write_head(
    uint64_t epoch, uint64_t timestamp, bytes writer, uint32_t spacing, str compression, MacKey mac
) except *:
    cdef WriteHead head
    head.epoch, head.timestamp, head.writer = epoch, timestamp, view_of(writer)
    head.spacing = spacing_of(spacing)
    if compression not in _COMPRESSIONS:
        raise ValueError(f"no compression is called {compression!r}")
    head.compression = <Compression> <int> _COMPRESSIONS[compression]
    head.tags = NULL
    head.mac = mac_of(mac)
    if head.mac != NULL and not head.mac.known():
        raise ValueError("entries get MACs from clients with the log's key only")
    return head


_COMPRESSIONS = {"none": <int> NO_COMPRESSION, "zstd": <int> ZSTD, "lz4": <int> LZ4}


def encode_write(
    uint64_t epoch,
    uint64_t timestamp,
    bytes writer not None,
    uint32_t spacing,
    positions,
    numbers,
    data,
    str compression not None="none",
    MacKey mac=None,
):
    cdef vector[NewEntry] entries
    cdef NewEntry entry
    cdef WriteEncoder encoder
    cdef list alive = []  # the bytes that `entries` points into
    cdef TagsTaken tags
    cdef bytes out
    if not len(positions) == len(numbers) == len(data):
        raise ValueError("positions, numbers and data must be equally long")
    entries.reserve(len(positions))
    owned = entries_owned(data)
    for position, number, content in zip(positions, numbers, owned):
        entry.position, entry.number, entry.data = position, number, view_of(data_of(content))
        alive.append(content)
        entries.push_back(entry)
    head = write_head(epoch, timestamp, writer, spacing, compression, mac)
    tags = tags_taken(owned)
    if tags is not None:
        head.tags = &tags.taken
    if encoder.begin(head, entries.data(), entries.size(), False, 0) != 0:
        raise ValueError(
            "not a valid write: positions must ascend and be of one object, numbers lie within 2**32, the writer's id has 16 bytes, and the limits hold"
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
    uint32_t spacing,
    uint64_t position,
    uint64_t number,
    entries,
    Py_ssize_t start,
    Py_ssize_t end,
    str compression not None="none",
    MacKey mac=None,
):
    cdef NewEntries taken = NewEntries.__new__(NewEntries)
    cdef Py_ssize_t count, i
    cdef uint64_t first
    cdef NewEntry entry
    cdef WriteHead head = write_head(epoch, timestamp, writer, spacing, compression, mac)
    cdef Request request
    cdef EntryColumn column = None
    owned = entries_owned(entries[start:end])
    if isinstance(owned, EntryColumn):
        taken.alive = column = owned
    else:
        # A tuple of bytes: neither the caller's list nor what is in it changes until all is encoded.
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
    for first in head.spacing.firsts(position, position + <uint64_t> count):
        request = Request.__new__(Request)
        request.entries = taken
        if request.encoder.begin(
            head,
            &taken.news[first - position],
            head.spacing.count(first, position + <uint64_t> count),
            True,
            first - position,
        ) != 0:
            raise ValueError("the entries exceed what one write may carry")
        out.append((head.spacing.residue(first), request))
    return out
