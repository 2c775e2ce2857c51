"""Returns the positions of one stripe as columns, without an object per entry.

Data that is already contiguous is not copied.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
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


# Columns that grow entry by entry. The memory of the added data must stay valid.
@cython.final
cdef class ColumnBuilder:
    cdef bytes positions, timestamps, offsets  # with space for `count_max` entries
    cdef size_t count
    cdef uint64_t total
    cdef vector[string_view] pieces  # of the data; adjacent entries are in one piece

    def __cinit__(self, size_t count_max):
        self.positions = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> (8 * count_max))
        self.timestamps = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> (8 * count_max))
        self.offsets = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> (4 * (count_max + 1)))
        (<int32_t*> PyBytes_AS_STRING(self.offsets))[0] = 0

    # Adds an entry. Returns False if it does not fit into `bytes_max`; the first always fits.
    cdef bint add(
        self, uint64_t position, uint64_t timestamp, string_view data, uint64_t bytes_max
    ) except -1:
        cdef size_t i = self.count
        cdef string_view* last = NULL
        if self.total + data.size() > bytes_max and i > 0:
            return False
        if data.size() > 0:
            if not self.pieces.empty():
                last = &self.pieces.back()
            if last != NULL and last.data() + last.size() == data.data():
                last[0] = string_view(last.data(), last.size() + data.size())
            else:
                self.pieces.push_back(data)
        self.total += data.size()
        (<int64_t*> PyBytes_AS_STRING(self.positions))[i] = <int64_t> position
        (<int64_t*> PyBytes_AS_STRING(self.timestamps))[i] = <int64_t> min(
            timestamp, <uint64_t> 0x7FFFFFFFFFFFFFFF
        )
        (<int32_t*> PyBytes_AS_STRING(self.offsets))[i + 1] = <int32_t> self.total
        self.count += 1
        return True

    # Returns positions, timestamps, offsets and data. If `reply` has all data, it is not copied.
    cdef tuple columns(self, reply):
        cdef bytes copied
        cdef char* to
        cdef size_t count = self.count
        cdef string_view piece
        data = None
        if isinstance(reply, Payload) and self.pieces.size() == 1:
            data = part_of(reply, self.pieces[0])
        if data is None:
            copied = PyBytes_FromStringAndSize(NULL, <Py_ssize_t> self.total)
            to = PyBytes_AS_STRING(copied)
            with nogil:
                for piece in self.pieces:
                    memcpy(to, piece.data(), piece.size())
                    to += piece.size()
            data = memoryview(copied)
        return (
            memoryview(self.positions).cast("q")[:count],
            memoryview(self.timestamps).cast("q")[:count],
            memoryview(self.offsets).cast("i")[:count + 1],
            data,
        )


# Returns a piece of a reply without a copy, or None if the piece is not in the reply.
cdef object part_of(reply, string_view piece):
    cdef string_view content = reply_view(reply)
    cdef Py_ssize_t begin = piece.data() - content.data()
    cdef Py_ssize_t end = begin + <Py_ssize_t> piece.size()
    inside = 0 <= begin and end <= <Py_ssize_t> content.size()
    return memoryview(reply)[begin:end] if inside else None


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
        cdef ColumnBuilder out
        cdef ReadReply part, last = None  # the last part with an entry
        cdef uint64_t position, row, unit_end
        cdef uint64_t unit = <uint64_t> 1 << self.striping.shift
        cdef size_t at
        cdef size_t k = 0, parts = self.firsts.size(), over = 0, wanted = 0
        cdef vector[uint64_t] rows, counts
        cdef uint8_t state
        cdef bint added
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
        out = ColumnBuilder(wanted)
        next_start = None
        while over < parts and next_start is None:  # take the objects' units in turn
            part = <ReadReply> self.parts[k]
            over = over + 1 if rows[k] >= counts[k] else 0
            row, position = rows[k], self.position(k, rows[k])
            unit_end = min(counts[k], row + unit - position % unit)
            while row < unit_end:
                state = part.states[row]
                if state == WRITTEN:
                    added = out.add(
                        position,
                        part.decoded.timestamps[<uint32_t> row],
                        part.decoded.data_of(<uint32_t> row),
                        bytes_max,
                    )
                    if tags is not None:
                        own = part.tags_at(<uint32_t> row)
                    last = part
                else:
                    item = None if state == TRIMMED else settled[position]
                    if not isinstance(item, Entry):
                        if not in_gap:
                            gaps.append([])
                        add_gap(gaps[-1], position, item)
                        in_gap = True
                        row += 1
                        position += 1
                        continue
                    own = (<Entry> item).tags
                    added = out.add(position, (<Entry> item).us, (<Entry> item).content, bytes_max)
                if not added:
                    next_start = position
                    break
                in_gap = False
                if tags is not None:
                    tags.append(own)
                row += 1
                position += 1
            rows[k] = row
            k = (k + 1) % parts
        reply = None if last is None else keeper(last.reply, last.plain)
        return (*out.columns(reply), gaps, next_start, tags)

    cdef uint64_t position(self, size_t part, uint64_t row):
        return self.striping.after(self.firsts[part], row)


def entry_columns(
    list entries not None: list[Entry]
) -> tuple[memoryview, memoryview, memoryview, memoryview]:
    """Return positions, timestamps, offsets and data of entries, as :class:`ColumnWindow` does."""
    cdef ColumnBuilder out = ColumnBuilder(len(entries))
    cdef Entry entry
    for item in entries:
        entry = item
        if not out.add(entry.position, entry.us, entry.content, 0x7FFFFFFF):
            raise ValueError("offsets are of 32 bits: data of 2 GiB and more does not fit")
    return out.columns(None)


# Adds a gap to a row, or None for a trimmed position.
cdef int add_gap(list row, uint64_t position, gap) except -1:
    if gap is not None:
        row.append(gap)
    elif row and isinstance(row[-1], range):
        row[-1] = range(row[-1].start, position + 1)
    else:
        row.append(range(position, position + 1))
    return 0
