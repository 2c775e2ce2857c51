"""A window of positions, assembled from the replies of their stripe objects."""

cimport cython
from cpython.ref cimport Py_REFCNT
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from zlog._native.entry cimport Entry, data_of
from zlog._native.mutex cimport forks
from zlog._native.replies cimport UNANSWERED, WRITTEN, MacKey, ReadReply, decoded_reply
from zlog._native.striping cimport Striping, striping_of

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from zlog._base.process import inherited_error
from zlog._native.completions import ReplyBytes

if TYPE_CHECKING:
    _Item = TypeVar("_Item")


# Where a position's entry is: it has the number `index` in the reply with the number `part`.
cdef struct Slot:
    uint32_t part
    uint32_t index


cdef class Window:
    """Positions ``[start, end)``, assembled from the replies of several stripe objects.

    It is a sequence with an item for each position: an Entry, a State (a number), or None if no
    reply covers it. Entries are made on each access, from the replies, which the window keeps.

    Args:
        start: the first position.
        end: one past the last position.
        mac: the key of the log's MACs; None if its entries have no MACs.

    Attributes:
        entries: the number of positions that hold entries.
        data_bytes: the size of the data of all entries.
    """

    cdef readonly uint64_t start
    cdef readonly uint64_t end
    cdef readonly Py_ssize_t entries
    cdef readonly uint64_t data_bytes
    cdef vector[Slot] slots
    cdef vector[uint8_t] states
    cdef list parts  # the replies
    cdef MacKey mac

    def __cinit__(self, uint64_t start, uint64_t end, MacKey mac):
        if end < start:
            raise ValueError("a window's end must not be below its start")
        self.start, self.end = start, end
        self.parts, self.mac = [], mac
        self.slots.assign(end - start, Slot(0, 0))
        self.states.assign(end - start, UNANSWERED)

    def add(self, reply not None: ReplyBytes, uint64_t first, uint32_t striping) -> int:
        """Add the reply to a read of an object's positions from ``first`` on.

        Returns how many positions the reply covers. An object may answer only a part.

        Raises:
            CorruptEntry: the reply is malformed. (An entry with a wrong checksum is LOST.)
        """
        cdef Striping places = striping_of(striping)
        cdef ReadReply part
        cdef uint64_t asked, position = first
        cdef uint32_t i, index = <uint32_t> len(self.parts)
        cdef size_t at
        if not self.start <= first < self.end:
            raise ValueError("the reply belongs to another window")
        asked = min(places.count(first, self.end), <uint64_t> 65536)
        part = decoded_reply(reply, asked, NULL, first, places, self.mac, True)
        self.parts.append(part)
        for i in range(part.decoded.count):
            at = <size_t> (position - self.start)
            if self.states[at] == UNANSWERED:
                self.states[at] = part.states[i]
                self.slots[at] = Slot(index, i)
                if part.states[i] == WRITTEN:
                    self.entries += 1
                    self.data_bytes += part.decoded.data_of(i).size()
            position = places.next(position)
        return part.decoded.count

    # Sets a new entry's fields. Its data stays in the reply.
    cdef inline int fill(self, Entry entry, Py_ssize_t at) except -1:
        cdef Slot slot = self.slots[at]
        cdef ReadReply part = <ReadReply> self.parts[slot.part]
        entry.at = self.start + <uint64_t> at
        entry.us = part.decoded.timestamps[slot.index]
        entry.content = part.decoded.data_of(slot.index)
        entry.owner = part
        entry.tags = part.tags_at(slot.index) if part.decoded.tags.any() else ()
        return 0

    cdef Entry entry(self, Py_ssize_t at):
        cdef Entry entry = Entry.__new__(Entry)
        self.fill(entry, at)
        data_of(entry)
        return entry

    def __iter__(self) -> Iterator[Entry | int | None]:
        return Items([None, self].pop)

    def __len__(self) -> int:
        return <Py_ssize_t> self.states.size()

    def __getitem__(self, Py_ssize_t at) -> Entry | int | None:
        if not 0 <= at < <Py_ssize_t> self.states.size():
            raise IndexError(f"index {at} is out of range: the length is {self.states.size()}")
        if self.states[at] == UNANSWERED:
            return None
        return self.entry(at) if self.states[at] == 0 else self.states[at]

    def found(self) -> dict[int, Entry | int]:
        """Return the contents of the answered positions, by position."""
        cdef Py_ssize_t at
        return {
            self.start + at: self.entry(at) if self.states[at] == 0 else self.states[at]
            for at in range(<Py_ssize_t> self.states.size())
            if self.states[at] != UNANSWERED
        }


@cython.final
cdef class Items:  # Generic[_Item]
    """An iterator over the items of batches. Its length hint counts the rest of the current batch.

    The last four entries of a window refer to their data in a reply. After that, an entry that the
    caller has dropped is used again. If the caller still has it, its data is copied, because a
    small entry would otherwise keep a large reply in memory. (A loop over `enumerate` or `zip` has
    up to two entries besides its own.)

    Args:
        more: a function that returns the next batch, which may be empty. If it returns None, the
            iteration ends. If it raises an exception, the iterator raises it and then ends.
    """

    cdef object more
    cdef object batch   # the current batch
    cdef Window window  # the current batch, if it is a window full of entries
    cdef list recent    # the last four entries that were returned from `window`; None at first
    cdef Py_ssize_t at
    cdef Py_ssize_t count
    cdef bint busy
    cdef bint over
    cdef unsigned int born

    def __init__(self, more not None: Callable[[], Sequence[_Item] | None]):
        self.more = more
        self.born = forks

    def __iter__(self) -> Items[_Item]:
        return self

    def __length_hint__(self) -> int:
        return max(0, self.count - self.at)

    def __next__(self) -> _Item:
        cdef Py_ssize_t at
        cdef Entry entry
        if self.born != forks:
            raise inherited_error("this iterator")
        while self.at >= self.count:
            self.take()
        at = self.at
        self.at += 1
        if self.window is None:
            return self.batch[at]
        entry = self.released(at % 4)
        if entry is None:
            entry = self.recent[at % 4] = Entry.__new__(Entry)
        self.window.fill(entry, at)
        return entry

    def __dealloc__(self):
        self.release_all()

    # Returns a recent entry if the caller has dropped it. Otherwise copies its data.
    cdef inline Entry released(self, Py_ssize_t i):
        cdef Entry entry = <Entry> self.recent[i]
        if entry is None or Py_REFCNT(entry) == 2:  # in `recent` and here
            return entry
        data_of(entry)
        return None

    cdef int release_all(self) except -1:
        cdef Py_ssize_t i
        if self.recent is not None:
            for i in range(4):
                self.released(i)
        return 0

    cdef int take(self) except -1:
        """Get the next batch. The iterator ends after an error, or if there is no batch."""
        if self.busy:
            raise ValueError("the iterator is in use by another call")
        if self.over:
            raise StopIteration
        self.release_all()
        self.recent = [None] * 4
        self.busy = self.over = True
        try:
            batch = self.more()
        finally:
            self.busy = False
        if batch is None:
            raise StopIteration
        self.over = False
        self.window = batch if isinstance(batch, Window) and batch.entries == len(batch) else None
        self.batch = batch
        self.at, self.count = 0, len(batch)
        return 0
