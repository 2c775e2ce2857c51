"""Returns the positions of one stripe as columns, without an object per entry.

Data that is already contiguous is not copied.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from zlog._native.completions cimport Payload, keeper, reply_view
from zlog._native.entry cimport Entry
from zlog._native.replies cimport (
    TRIMMED, UNANSWERED, WRITTEN, MacKey, ReadReply, decoded_reply
)
from zlog._native.striping cimport Striping, striping_of

from typing import TYPE_CHECKING

from zlog._native.completions import ReplyBytes

if TYPE_CHECKING:
    from zlog.entry import Gap


# An entry on its way into the columns.
cdef struct Cell:
    uint64_t position
    uint64_t timestamp
    const char* data
    size_t size


cdef class ColumnWindow:
    """Positions of one stripe, as columns.

    Args:
        striping: the stripe's striping, packed.
        mac: the key of the log's MACs; None if its entries have no MACs.
        tags: whether :meth:`columns` returns tags.
        data: whether the reads ask for data, as in :func:`~zlog._native.replies.decode_read`.
    """

    cdef Striping striping
    cdef vector[uint64_t] firsts  # the first position of each object
    cdef list parts  # each object's reply, with the states of all requested positions
    cdef bint with_tags
    cdef bint with_data
    cdef MacKey mac

    def __cinit__(self, uint32_t striping, MacKey mac, bint tags=False, bint data=True):
        self.striping, self.parts, self.mac = striping_of(striping), [], mac
        self.with_tags, self.with_data = tags, data

    def add(self, reply: ReplyBytes | None, uint64_t first, uint64_t stop) -> None:
        """Add the reply to a read of an object's positions below ``stop``; None for no reply.

        Add objects in the order of their first positions, which must be within one turn.

        Raises:
            CorruptEntry: the reply is malformed. (An entry with a wrong checksum is LOST.)
        """
        cdef ReadReply part = ReadReply.__new__(ReadReply)
        cdef uint64_t unit = <uint64_t> 1 << self.striping.shift
        cdef bint in_order = self.firsts.empty() or (
            self.firsts.back() < first
            and first // unit < self.firsts.front() // unit + self.striping.stride
        )
        if not first < stop or not in_order:
            raise ValueError("parts must be added in the order of one stripe's objects")
        cdef uint64_t count = self.striping.count(first, stop)
        if count > 65536:
            raise ValueError("a part must have at most 65536 positions of an object")
        if reply is not None:
            part = decoded_reply(reply, count, NULL, first, self.striping, self.mac, self.with_data)
        part.states.resize(count, UNANSWERED)
        self.firsts.push_back(first)
        self.parts.append(part)

    def open(self) -> list[int]:
        """Return the positions that need further requests, object by object.

        These positions are unwritten, filled, lost or forged, or have no reply.
        """
        cdef ReadReply part
        cdef size_t row, k
        found = []
        for k in range(self.firsts.size()):
            part = self.parts[k]
            for row in range(part.states.size()):
                if part.states[row] != WRITTEN and part.states[row] != TRIMMED:
                    found.append(self.position(k, row))
        return found

    def columns(
        self,
        dict settled not None: dict[int, Entry | Gap],
        uint64_t start,
        uint64_t end,
        uint64_t bytes_max,
    ) -> tuple[
        memoryview,
        memoryview,
        memoryview,
        memoryview,
        list[list[Gap | range]],
        int | None,
        list[tuple[str, ...]] | None,
    ]:
        """Return the columns of positions in ``[start, end)``.

        Args:
            settled: the contents of the open positions.
            start: one of the positions.
            end: above ``start``.
            bytes_max: the maximum size of the data in bytes, below 2 GiB. A larger entry is
                returned alone.

        Returns:
            The positions (int64), timestamps (int64), offsets (int32) and data of the entries. Then
            a list of gaps for each run of positions without entries, with the gaps of ``settled``
            and ranges of trimmed positions. Then the position to continue at, or None at the end.
            Last, the tags of each entry, or None if they were not requested.
        """
        cdef vector[Cell] cells
        cdef Cell cell
        cdef ReadReply part
        cdef uint32_t row
        cdef uint64_t unit
        cdef size_t at
        cdef uint64_t total = 0
        cdef size_t k = 0, parts = self.firsts.size(), over = 0, wanted = 0
        cdef vector[uint64_t] rows, counts
        cdef bint scattered = False
        cdef uint8_t state
        cdef string_view content
        cdef int from_reply = -1
        cdef list gaps = []  # one list per row of positions without an entry
        cdef bint in_gap = False
        cdef tuple own = ()
        cdef list tags = [] if self.with_tags else None
        if bytes_max > 0x7FFFFFFF:
            raise ValueError("offsets are of 32 bits: data of 2 GiB and more does not fit")
        for at in range(parts):
            part = self.parts[at]
            rows.push_back(self.striping.count(self.firsts[at], start))
            counts.push_back(min(part.states.size(), self.striping.count(self.firsts[at], end)))
            wanted += counts[at] - min(rows[at], counts[at])
            if self.position(at, rows[at]) < self.position(k, rows[k]):
                k = at
        cells.reserve(wanted)
        next_start = None
        while over < parts and next_start is None:  # take the objects' units in turn
            part = <ReadReply> self.parts[k]
            over = over + 1 if rows[k] >= counts[k] else 0
            cell.position = self.position(k, rows[k])
            unit = cell.position >> self.striping.shift
            while rows[k] < counts[k] and cell.position >> self.striping.shift == unit:
                row = <uint32_t> rows[k]
                state = part.states[row]
                item = None
                if state == WRITTEN:
                    content = part.decoded.data_of(row)
                    cell.data, cell.size = content.data(), content.size()
                    cell.timestamp = part.decoded.timestamps[row]
                    if tags is not None:
                        own = part.tags_at(row)
                    from_reply = <int> k
                elif state != TRIMMED:
                    item = settled[cell.position]
                if isinstance(item, Entry):
                    scattered = True  # the entry is not in a reply
                    content = (<Entry> item).content
                    cell.data, cell.size = content.data(), content.size()
                    cell.timestamp = (<Entry> item).us
                    own = (<Entry> item).tags
                elif state != WRITTEN:
                    if not in_gap:
                        gaps.append([])
                    add_gap(gaps[-1], cell.position, item)
                    in_gap = True
                    rows[k] += 1
                    cell.position += 1
                    continue
                if total + cell.size > bytes_max and not cells.empty():
                    next_start = cell.position
                    break
                in_gap = False
                if not cells.empty():
                    scattered |= cells.back().data + cells.back().size != cell.data
                total += cell.size
                cells.push_back(cell)
                if tags is not None:
                    tags.append(own)
                rows[k] += 1
                cell.position += 1
            k = (k + 1) % parts
        data = None
        if self.with_data and not scattered and from_reply >= 0:
            part = self.parts[from_reply]
            data = self.piece(keeper(part.reply, part.plain), cells)
        return (*columns_of(cells, data, <Py_ssize_t> total), gaps, next_start, tags)

    cdef uint64_t position(self, size_t part, uint64_t row):
        return self.striping.after(self.firsts[part], row)

    cdef object piece(self, reply, const vector[Cell]& cells):
        """Return the data of entries without a copy. They must be contiguous in one reply."""
        cdef string_view content = reply_view(reply)
        cdef const char* begin = cells.front().data
        cdef const char* end = cells.back().data + cells.back().size
        if isinstance(reply, Payload):
            return memoryview(reply)[begin - content.data() : end - content.data()]
        return None


def entry_columns(
    list entries not None: list[Entry]
) -> tuple[memoryview, memoryview, memoryview, memoryview]:
    """Return positions, timestamps, offsets and data of entries, as :class:`ColumnWindow` does."""
    cdef vector[Cell] cells
    cdef Cell cell
    cdef Py_ssize_t total = 0
    cdef Entry entry
    for item in entries:
        entry = item
        cell.position, cell.timestamp = entry.position, entry.us
        cell.data, cell.size = entry.content.data(), entry.content.size()
        total += <Py_ssize_t> entry.content.size()
        cells.push_back(cell)
    if total > 0x7FFFFFFF:
        raise ValueError("offsets are of 32 bits: data of 2 GiB and more does not fit")
    return columns_of(cells, None, total)


# Adds a gap to a row, or None for a trimmed position.
cdef int add_gap(list row, uint64_t position, gap) except -1:
    if gap is not None:
        row.append(gap)
    elif row and isinstance(row[-1], range):
        row[-1] = range(row[-1].start, position + 1)
    else:
        row.append(range(position, position + 1))
    return 0


# Positions, timestamps, offsets and data of entries. Pass `data` if it is already known.
cdef tuple columns_of(const vector[Cell]& cells, data, Py_ssize_t total):
    cdef size_t count = cells.size(), i
    cdef bytes positions = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> (8 * count))
    cdef bytes timestamps = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> (8 * count))
    cdef bytes offsets = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> (4 * (count + 1)))
    cdef bytes copied = b"" if data is not None else PyBytes_FromStringAndSize(NULL, total)
    cdef bint copy = data is None
    cdef int64_t* position = <int64_t*> PyBytes_AS_STRING(positions)
    cdef int64_t* timestamp = <int64_t*> PyBytes_AS_STRING(timestamps)
    cdef int32_t* offset = <int32_t*> PyBytes_AS_STRING(offsets)
    cdef char* to = PyBytes_AS_STRING(copied)
    cdef int32_t end = 0
    with nogil:
        offset[0] = 0
        for i in range(count):
            position[i] = <int64_t> cells[i].position
            timestamp[i] = <int64_t> min(cells[i].timestamp, <uint64_t> 0x7FFFFFFFFFFFFFFF)
            if copy:
                memcpy(to + end, cells[i].data, cells[i].size)
            end += <int32_t> cells[i].size
            offset[i + 1] = end
    if copy:
        data = memoryview(copied)
    return (
        memoryview(positions).cast("q"),
        memoryview(timestamps).cast("q"),
        memoryview(offsets).cast("i"),
        data,
    )
