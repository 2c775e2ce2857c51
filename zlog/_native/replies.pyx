"""Replies of the methods that carry entries (cls_zlog/wire/read_reply.h).

The decoding functions raise `zlog.CorruptEntry` if the bytes are not such a reply, and
`zlog.UnsupportedVersion` if a later version made it.
"""

cimport cython
from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.optional cimport optional
from libcpp.string cimport string
from libcpp.string_view cimport string_view
from libcpp.vector cimport vector

from zlog._native.completions cimport reply_view, well_formed
from zlog._native.entry cimport Entry, new_entry
from zlog._native.host cimport CppBuffer, bytes_of, view_of
from zlog._native.new_entries cimport new_tagged
from zlog._native.striping cimport Striping, positions_of, striping_of

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from zlog._native.completions import ReplyBytes
from zlog._native.new_entries import NewEntry
from zlog.errors import CorruptEntry

if TYPE_CHECKING:
    from typing_extensions import Buffer

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

cdef extern from "cls_zlog/wire/select_messages.h" namespace "zlog" nogil:
    ctypedef uint8_t EntryState
    cdef cppclass CppSelectGap "zlog::SelectGap":
        uint64_t first
        uint64_t last
        EntryState state

    cdef cppclass CppSelectReply "zlog::SelectReply":
        optional[uint64_t] highest
        uint64_t end
        vector[CppSelectGap] gaps
        uint32_t count
        Column[uint64_t] positions
        CppStoredReply entries

    cdef cppclass CppTagsListReply "zlog::TagsListReply":
        uint64_t end

cdef extern from "cls_zlog/client/newest_of_tags.h" namespace "zlog" nogil:
    cdef cppclass CppNewestOfTags "zlog::NewestOfTags":
        void note(const CppTagsListReply& reply, size_t space) except +
        vector[uint64_t] superseded(const CppTagsListReply& reply) except +
        size_t size()
        cbool doubtful()


FORGED: int = <int> forged_state
"""The state of an entry with a correct checksum but a wrong MAC. Only clients report it."""


@cython.final
cdef class MacKey:
    """The key of a log's MACs. It cannot be read, printed or pickled.

    Args:
        key: bytes of any length. None means that the client does not have the key. It can then
            count entries, but cannot read their data.

    Raises:
        RuntimeError: OpenSSL is missing.
    """

    def __init__(self, bytes key):
        if key is None:
            self.key.reset(new CppMacKey())
        else:
            self.key.reset(new CppMacKey(view_of(key)))

    def __reduce__(self):
        raise TypeError("a log's key can't be pickled or copied")


cdef class TagTable:
    cdef tuple of(self, uint32_t i):
        cdef CppTagsReader* reader = self.reader.get()
        cdef uint32_t at = reader.begin_of(i), id
        cdef uint32_t end = at + reader.count_of(i)
        if end == at:
            return ()
        if end > at + 1:
            return tuple([self.names[reader.tags().ids[each]] for each in range(at, end)])
        id = reader.tags().ids[at]
        found = self.alone[id]
        if found is None:
            found = self.alone[id] = (self.names[id],)
        return <tuple> found


# Returns None if no entry has tags. Bytes that are not UTF-8 (from hostile writers) are escaped.
cdef TagTable tag_table(const CppReadReply& reply):
    cdef TagTable table
    cdef string_view name
    cdef size_t i
    if not reply.tags.any():
        return None
    table = TagTable.__new__(TagTable)
    table.reader.reset(new CppTagsReader(reply.tags))
    table.names = []
    for i in range(table.reader.get().names().size()):
        name = table.reader.get().names()[i]
        table.names.append(
            PyUnicode_DecodeUTF8(name.data(), <Py_ssize_t> name.size(), "backslashreplace")
        )
    table.alone = [None] * len(table.names)
    return table


def crc32c(data: Buffer, uint32_t seed=0) -> int:
    """Return the CRC-32C (Castagnoli) of ``data``, continuing from ``seed``."""
    view = memoryview(data)
    if not view.c_contiguous:
        raise BufferError("a checksum needs contiguous memory")
    cdef Py_buffer* buffer = PyMemoryView_GET_BUFFER(view)
    return cpp_crc32c(string_view(<const char*> buffer.buf, <size_t> buffer.len), seed)


def fullest(replies not None: Iterable[tuple[int, ReplyBytes]]) -> tuple[int, int]:
    """Return the ``(records, bytes)`` of the fullest object, from OK replies to writes.

    The code OK acknowledges a write, so replies that cannot be decoded are skipped.
    """
    cdef Fullness fullness
    cdef uint32_t records = 0
    cdef uint64_t size = 0
    for _, payload in replies:
        if <int> decode_message(reply_view(payload), &fullness) == 0:
            records, size = max(records, fullness.records), max(size, fullness.bytes)
    return records, size


cdef class ReadReply:
    """The reply to a read. It covers the first ``len()`` of the requested positions."""

    def __len__(self) -> int:
        return self.decoded.count

    cdef uint32_t at(self, Py_ssize_t i) except? 0:
        if not 0 <= i < <Py_ssize_t> self.decoded.count:
            raise IndexError(f"index {i} is out of range: there are {self.decoded.count} entries")
        return <uint32_t> i

    cdef uint32_t at_id(self, Py_ssize_t i) except? 0:
        if not self.decoded.with_ids:
            raise ValueError("the read was made without with_ids")
        return self.at(i)

    def state(self, Py_ssize_t i) -> int:
        """Return the state: 0 written, 1 unwritten, 2 filled, 3 trimmed, 4 lost, 5 unreadable.

        An entry whose checksum is wrong is lost.
        """
        return self.states[self.at(i)]

    def taken_end(self) -> int:
        """Return one past the last position that is not unwritten, or 0 if all are unwritten."""
        cdef size_t end = self.states.size()
        while end > 0 and self.states[end - 1] == 1:
            end -= 1
        return end

    def timestamp(self, Py_ssize_t i) -> int:
        """Return when it was written or filled, in µs since 1970-01-01 UTC, or 0 if unknown."""
        return self.decoded.timestamps[self.at(i)]

    def data(self, Py_ssize_t i) -> bytes:
        """Return the entry's data, which is empty if its state is not 0."""
        # The reply also has the bytes of an entry with a wrong checksum.
        cdef uint32_t at = self.at(i)
        return bytes_of(self.decoded.data_of(at)) if self.states[at] == 0 else b""

    def tags(self, Py_ssize_t i) -> tuple[str, ...]:
        """Return the entry's tags, which are empty if the read did not request them."""
        return self.tags_at(self.at(i))

    cdef tuple tags_at(self, uint32_t i):
        if not self.decoded.tags.any():
            return ()
        if self.table is None:
            self.table = tag_table(self.decoded)
        return self.table.of(i)

    def entry(self, Py_ssize_t i) -> NewEntry:
        """Return the entry in the form in which it is appended: its data, with its tags if any."""
        return new_tagged(self.data(i), self.tags(i))

    def at_position(self, Py_ssize_t i, uint64_t position) -> Entry:
        """Return the entry as readers receive it."""
        cdef Entry entry = Entry.__new__(Entry)
        entry.at, entry.us = position, self.decoded.timestamps[self.at(i)]
        entry.owner, entry.tags = self.data(i), self.tags(i)
        entry.content = view_of(<bytes> entry.owner)
        return entry

    def writer(self, Py_ssize_t i) -> bytes:
        """Return the writer's id (only after a read ``with_ids``)."""
        return bytes_of(self.decoded.writer_of(self.at_id(i)))

    def number(self, Py_ssize_t i) -> int:
        """Return the append's number (only after a read ``with_ids``)."""
        return self.decoded.numbers[self.at_id(i)]

    def reason(self, Py_ssize_t i) -> int:
        """Return why the position was filled (only after a read ``with_ids``)."""
        return <uint8_t> self.decoded.reason_of(self.at_id(i))


def decode_read(
    reply not None: ReplyBytes, positions: Sequence[int], MacKey mac, bint with_data=True
) -> ReadReply:
    """Decode the reply to a read of ``positions``, and check every entry's checksum and MAC.

    Args:
        reply: the reply.
        positions: the requested positions.
        mac: the key of the log's MACs; None if its entries have no MACs.
        with_data: whether the read requested data. If not, nothing is checked.
    """
    cdef vector[uint64_t] asked = positions_of(positions)
    return decoded_reply(reply, asked.size(), asked.data(), 0, striping_of(1), mac, with_data)


cdef ReadReply decoded_reply(
    reply, uint64_t asked, const uint64_t* positions, uint64_t first, Striping striping, MacKey mac,
    bint with_data
):
    cdef ReadReply out = ReadReply.__new__(ReadReply)
    cdef string_view content = reply_view(reply)
    cdef int result
    out.reply, out.mac = reply, mac
    cdef const CppMacKey* key = mac_of(mac)
    with nogil:
        result = <int> decode_message(content, &out.decoded)
        if result == 0 and out.decoded.count > asked:
            result = 1
        if result == 0:
            out.decoded.mac, out.decoded.with_data = key, with_data
            out.plain = open_blocks(&out.decoded)
            out.states.resize(out.decoded.count)
            if positions != NULL:
                out.decoded.states_at(positions, out.states.data())
            else:
                out.decoded.states_of(first, striping, out.states.data())
    well_formed(result, "read reply")
    return out


def decode_fills(
    reply not None: ReplyBytes, positions: Sequence[int]
) -> list[tuple[int, bytes, int, int]]:
    """Return the filled positions in the reply to a read with ids of ``positions``.

    Each position comes with the id of the client that filled it, the time in µs since 1970-01-01
    UTC, and the reason.
    """
    cdef CppReadReply decoded
    cdef vector[uint64_t] asked = positions_of(positions)
    cdef uint32_t i
    well_formed(<int> decode_message(reply_view(reply), &decoded), "read reply")
    if decoded.count > asked.size() or not decoded.with_ids:
        raise CorruptEntry("the store did not return append ids as requested")
    return [
        (
            asked[i],
            bytes_of(decoded.writer_of(i)),
            decoded.timestamps[i],
            <uint8_t> decoded.reason_of(i),
        )
        for i in range(decoded.count)
        if decoded.states[i] == FILLED
    ]


class Selected(NamedTuple):
    """The reply to a select (docs/formats/wire.md).

    Attributes:
        highest: the object's highest position that is not unwritten, if any.
        end: all positions below it were examined; in reverse, all positions from it on.
        gaps: the first position, last position and state of ranges that could not be examined.
        entries: the entries with the tags, in the requested order.
        damaged: the positions of entries that are lost, unreadable or forged.
    """

    highest: int | None
    end: int
    gaps: list[tuple[int, int, int]]
    entries: list[Entry]
    damaged: list[int]


def decode_select(reply not None: ReplyBytes, MacKey mac, bint with_data=True) -> Selected:
    """Decode the reply to a select, and check entries as :func:`decode_read` does."""
    cdef CppSelectReply decoded
    cdef CppReadReply taken
    cdef string_view content = reply_view(reply)
    cdef const CppMacKey* key = mac_of(mac)
    cdef CppBuffer plain
    cdef TagTable table
    cdef vector[uint64_t] positions
    cdef vector[uint8_t] states
    cdef uint32_t i
    cdef int result
    with nogil:
        result = <int> decode_message(content, &decoded)
        if result == 0 and decoded.count > 0:
            taken = CppReadReply(decoded.entries, key, with_data)
            plain = open_blocks(&taken)
            for i in range(decoded.count):
                positions.push_back(decoded.positions[i])
            states.resize(decoded.count)
            taken.states_at(positions.data(), states.data())
    well_formed(result, "select reply")
    table = tag_table(taken)
    entries, damaged = [], []
    for i in range(decoded.count):
        if states[i] == WRITTEN:
            tags = () if table is None else table.of(i)
            entries.append(new_entry(positions[i], taken.data_of(i), taken.timestamps[i], tags))
        elif states[i] != TRIMMED:  # the index may be older than a trim
            damaged.append(positions[i])
    gaps = [
        (decoded.gaps[i].first, decoded.gaps[i].last, <uint8_t> decoded.gaps[i].state)
        for i in range(decoded.gaps.size())
    ]
    highest = decoded.highest.value() if decoded.highest.has_value() else None
    return Selected(highest, decoded.end, gaps, entries, damaged)


@cython.final
cdef class NewestOfTags:
    """The position of the newest entry with each tag, from replies to ``tags_list``.

    Its length is the number of known tags.

    Attributes:
        doubtful: whether :meth:`superseded` found an entry that has newer entries for some of its
            tags, but whose other tags are not known.
    """

    cdef CppNewestOfTags known

    def __len__(self) -> int:
        return <Py_ssize_t> self.known.size()

    @property
    def doubtful(self) -> bool:
        return self.known.doubtful()

    def note(self, reply not None: ReplyBytes, Py_ssize_t space=-1) -> int:
        """Add the entries of a reply, with at most ``space`` new tags. Returns the reply's end."""
        cdef CppTagsListReply decoded
        cdef string_view content = reply_view(reply)
        cdef int result
        with nogil:
            result = <int> decode_message(content, &decoded)
            if result == 0:
                self.known.note(decoded, <size_t> space)  # -1 becomes the largest
        well_formed(result, "tags_list reply")
        return decoded.end

    def superseded(self, reply not None: ReplyBytes) -> tuple[int, list[int]]:
        """Return the end of a reply, and those of its entries whose tags all have a newer entry."""
        cdef CppTagsListReply decoded
        cdef vector[uint64_t] found
        cdef string_view content = reply_view(reply)
        cdef int result
        with nogil:
            result = <int> decode_message(content, &decoded)
            if result == 0:
                found = self.known.superseded(decoded)
        well_formed(result, "tags_list reply")
        return decoded.end, found


def newest(bytes name not None, values: Sequence[bytes]) -> int | None:
    """Return the index of the newest of several sound replicas of a stored value.

    Returns None if two contradict each other, because neither is newer in all numbers that never
    fall. Replicas of other values than a stripe object's header or a log's head must be equal.
    """
    cdef optional[size_t] found = cpp_newest(name, values)
    return found.value() if found.has_value() else None
