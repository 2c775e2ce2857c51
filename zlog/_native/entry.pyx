"""The entries that readers receive. They are small, because a reader makes millions of them."""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.datetime cimport import_datetime, timedelta_new
from libc.stdint cimport uint64_t

from zlog._native.host cimport view_of

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import_datetime()

cdef object EPOCH_ZERO = datetime(1970, 1, 1, tzinfo=timezone.utc)
cdef object LAST_TIME = datetime.max.replace(tzinfo=timezone.utc)
cdef object MICROSECOND = timedelta(microseconds=1)
cdef uint64_t DAY_US = 86_400_000_000


def from_timestamp(uint64_t us) -> datetime:
    """Convert a stored time (µs since 1970, UTC) to an aware datetime, at most the highest one."""
    cdef uint64_t days = us // DAY_US, rest = us % DAY_US
    if days > 2_932_896:  # 9999-12-31
        return LAST_TIME
    return EPOCH_ZERO + timedelta_new(<int> days, <int> (rest // 1_000_000), <int> (rest % 1_000_000))

# The last time that was converted, and its datetime. The entries of a batch have the same time.
cdef uint64_t known_us = 0

cdef object known_time = EPOCH_ZERO


cdef tuple fields_of(Entry entry):
    return entry.at, data_of(entry), time_of(entry.us)


cdef object time_of(uint64_t us):
    global known_us, known_time
    if us != known_us:
        known_time = from_timestamp(us)
        known_us = us
    return known_time


# Position, time and data become objects only on access. The entries that an iterator returned last
# refer to their data in a reply (Items in window.pyx); all others have a copy. An entry refers to no
# object that can refer back, so the garbage collector ignores it.
@cython.final
@cython.freelist(1024)
@cython.no_gc
@cython.total_ordering
cdef class Entry:
    """One entry of a log. It behaves like a named tuple of position, data and timestamp.

    ``memoryview(entry)`` is a view of its data. In a loop over the entries of a log, making a view
    copies nothing, but a view that is kept also keeps the reply that contains the entry.

    Attributes:
        position: the entry's position, 0 ≤ position < 2**63.
        data: the entry's bytes, as appended.
        timestamp: when its writer appended it, by the writer's clock, UTC, in microseconds.
        end: one past the entry's position. As after a Gap, a reader continues there.
        tags: the entry's tags, without duplicates, in no particular order. They are not in the
            tuple, but entries with different tags are not equal.
    """

    __match_args__ = _fields = ("position", "data", "timestamp")


    def __init__(
        self,
        uint64_t position,
        bytes data not None,
        timestamp not None: datetime,
        tags: Iterable[str] = (),
    ):
        self.at, self.owner, self.tags = position, data, tuple(tags)
        self.content = view_of(data)
        self.us = (timestamp - EPOCH_ZERO) // MICROSECOND

    @property
    def position(self) -> int:
        return self.at

    @property
    def data(self) -> bytes:
        return data_of(self)

    @property
    def end(self) -> int:
        return self.at + 1

    @property
    def timestamp(self) -> datetime:
        return time_of(self.us)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        data = <void*> self.content.data()
        PyBuffer_FillInfo(buffer, self.owner, data, <Py_ssize_t> self.content.size(), True, flags)

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[Any]:
        return iter(fields_of(self))

    def __getitem__(self, index: Any) -> Any:
        return fields_of(self)[index]

    def __eq__(self, other):
        cdef Entry that
        if isinstance(other, Entry):
            that = <Entry> other
            if self.at != that.at or self.us != that.us or self.content != that.content:
                return False
            return self.tags == that.tags or set(self.tags) == set(that.tags)
        return fields_of(self) == other if isinstance(other, tuple) else NotImplemented

    def __lt__(self, other: Entry | tuple[Any, ...]) -> bool:
        return fields_of(self) < tuple(other) if isinstance(other, (Entry, tuple)) else NotImplemented

    def __hash__(self) -> int:
        return hash(fields_of(self))

    def __reduce__(self):
        return Entry, (*fields_of(self), self.tags)

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, fields_of(self)))

    def _replace(self, **fields) -> Entry:
        return Entry(**{**self._asdict(), "tags": self.tags, **fields})

    def __repr__(self):
        tags = f", tags={self.tags!r}" if self.tags else ""
        at, data, time = fields_of(self)
        return f"Entry(position={at!r}, data={data!r}, timestamp={time!r}{tags})"
