"""Reads a log in order, either a range of it once or everything from a position on.

The log is read in windows, which are ranges of positions read with one operation per stripe object.
While the caller works on one window, the next two are already requested.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar, cast

from zlog._base.codes import Code, State
from zlog._base.deadline import Deadline, Timeout
from zlog._base.io import Reply
from zlog._base.names import check_position, check_range
from zlog._base.settings import Budget, HoleTimeout
from zlog._base.wanted import Match, Wanted
from zlog._layout.segments import Form
from zlog._layout.stripe_index import StripeUnknown
from zlog._layout.views import backoff
from zlog._native.window import Window as DecodedWindow
from zlog._positions.positions import Positions
from zlog._read.items import fills_of, gap_of, in_order
from zlog._read.read import Reader, Window
from zlog._read.select import TagReader
from zlog.entry import Entry, Gap, GapKind
from zlog.read_only import ReadOnlyStore

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Items = Sequence[Entry | Gap]

_WINDOW_POSITIONS_FIRST = 512
_WINDOW_POSITIONS_MIN = 16
WINDOW_POSITIONS_MAX = 16384
WINDOW_BYTES = 8 << 20
"""The target for the data of one window. The sizes of earlier entries decide how many positions."""

_WINDOW_BYTES_LOCAL = 1 << 20
"""The target if this process reads the store itself. It is small, so that a window's data is still
in the processor's cache when it is checked and turned into entries."""

_BYTES_SLACK = 2
"""A window with more than this many times the target is read in several steps."""

_WINDOWS_AHEAD = 2
"""How many windows are in flight while the caller works on another: three times WINDOW_BYTES."""

_WINDOWS_WITH_IDS = 8
"""After a window with fills, how many of the next windows request who filled positions."""

_WAIT_SECONDS = 5.0
"""How long a follower waits at the sequencer for a new entry before it asks again."""

_PLAIN = (State.UNWRITTEN, State.TRIMMED)
"""The number of gaps that a window reports completely. Details of other gaps are read later."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options for reading a range or following a log.

    Attributes:
        tags, match: the tags of the entries to read; see :meth:`zlog.Log.read_range`.
        hole_timeout: how many seconds to wait for a hole; by default the handle's timeout.
        passes_holes: whether to continue after a hole that cannot be filled.
        indexes, window_bytes, with_tags: settings for columns; see :meth:`zlog.Log.read_columns`.

    Raises ValueError if an index is negative or ``window_bytes`` is below 1.
    """

    tags: Collection[str] | None = None
    match: Match = "any"
    hole_timeout: Timeout = ...
    indexes: Collection[int] | None = None
    window_bytes: int | None = None
    with_tags: bool = False
    passes_holes: bool = True

    def __post_init__(self) -> None:
        if self.window_bytes is not None and self.window_bytes < 1:
            raise ValueError(f"window_bytes must be at least 1, not {self.window_bytes}")
        if self.indexes is not None and any(index < 0 for index in self.indexes):
            raise ValueError("the index of a stripe object must be 0 or more")

    @property
    def wanted(self) -> Wanted | None:
        """The tags to search for, or None to read all entries. Raises as :meth:`Wanted.of` does."""
        return None if self.tags is None else Wanted.of(self.tags, self.match)


class OrderedReader(Protocol[T_co]):
    """Reads a log in order. The caller passes the end of each step."""

    @property
    def position(self) -> int:
        """The next position to read."""

    async def next(self, tail: int) -> T_co:
        """Return content from ``position`` on, below ``tail``. It may be empty."""

    def go_to(self, position: int) -> None:
        """Continue at another position."""


class Prefetcher(ABC, Generic[T]):
    """Reads windows in order, and requests the next windows in advance.

    A window contains about ``window_bytes`` of data, and at most ``bytes_max``. If a window ends
    with a gap, the gap is held back until the next window shows whether it continues. At the tail,
    and at a hole where the reader stops, the gap is returned at once.

    Attributes:
        position: the next position.
        with_ids: how many of the next windows to request together with the ids of the clients that
            filled positions. Filled positions of other windows are read again with the ids.
        form: how offloaded segments are read.
    """

    with_ids = 0
    form: Form = "objects"

    def __init__(
        self,
        reader: Reader,
        position: int,
        options: ReadOptions,
        bytes_max: int | None = None,
    ) -> None:
        reader.layout.macs.check_key()
        self.reader = reader
        self.holes = HoleTimeout(reader.budget, options.hole_timeout)
        self.position = position
        self._asked = position
        self._bytes = options.window_bytes or WINDOW_BYTES
        self._bytes_max = bytes_max or _BYTES_SLACK * self._bytes
        self._count = _WINDOW_POSITIONS_FIRST
        self._under_way: deque[Window] = deque()
        self._kept: Gap | None = None
        self._passes_holes = options.passes_holes

    @abstractmethod
    async def finish(self, window: Window, tail: int, deadline: Deadline) -> tuple[T, int, int]:
        """Return a window's content, the size of its data in bytes, and where the content ends.

        If the content ends at a hole, another call returns the rest. If the data reaches the limit,
        the window's ``end`` is lowered, and the next window begins there.
        """

    @abstractmethod
    def trimmed(self, gap: Gap) -> T:
        """Return the content for positions that are trimmed and need not be read."""

    def start(self, start: int, end: int, bytes_max: int) -> Window:
        """Start to read a window. The window may end before ``end``."""
        return self.reader.start(start, end, bytes_max, with_ids=self.with_ids > 0)

    def positions_max(self, _: int) -> int:
        """Return how many positions a window may have if it starts at the given position."""
        return WINDOW_POSITIONS_MAX

    def join(self, kept: Gap | None, content: T, *, ends: bool) -> tuple[T, Gap | None]:
        """Prepend the held gap to a window's content. Hold its last gap, except if it ``ends``."""
        del kept, ends  # only subclasses hold gaps
        return content, None

    def keeps(self, gap: Gap) -> bool:
        """Whether a gap at the end of a window is held."""
        return self._passes_holes or gap.kind is not GapKind.UNWRITTEN

    async def next(self, tail: int) -> T:
        """See :class:`OrderedReader`."""
        content = await self._window(tail)
        content, self._kept = self.join(self._kept, content, ends=self.position >= tail)
        return content

    def go_to(self, position: int) -> None:
        """Continue at another position. Drop the windows in flight and the held gap."""
        self._kept = None
        self._jump(position)

    async def read_rest(
        self,
        window: Window,
        replies: Sequence[Reply],
        rest: list[int],
        data_bytes: int,
        deadline: Deadline,
    ) -> None:
        """Read the positions in ``rest``, which a window's first replies did not contain.

        The first replies had ``data_bytes`` of data. If the window's data reaches its limit, the
        window's ``end`` is lowered to the first position that was not read.
        """
        found = window.found
        assert found is not None
        for asked, reply in zip(window.parts, replies, strict=True):
            if window.with_ids and rest and reply.code == Code.OK:
                found.update(fills_of(reply.payload, asked))
        while left := [p for p in rest if p not in found]:
            if left[0] > window.parts[0].start and data_bytes >= window.bytes_max:
                window.end = left[0]
                for position in [p for p in found if p >= window.end]:
                    del found[position]
                break
            share = max(1, (window.bytes_max - data_bytes) // len(window.parts))
            more = await self.reader.read_some(left, deadline, bytes_max=share)
            data_bytes += sum(len(slot.data) for slot in more.values() if isinstance(slot, Entry))
            found.update(more)
        slots = (found.get(p) for p in rest)
        self.note_fills(any(isinstance(s, Gap) and s.kind is GapKind.FILLED for s in slots))

    def note_fills(self, filled: bool) -> None:
        """Record whether the last window had fills."""
        self.with_ids = _WINDOWS_WITH_IDS if filled else max(0, self.with_ids - 1)

    async def settle(self, window: Window, tail: int, deadline: Deadline) -> int:
        """Settle a window's holes with :meth:`Reader.settle`. Returns the open hole, or the end."""
        found, start = window.found, window.start
        assert found is not None
        parts = window.parts
        hole = await self.reader.settle(found, self.holes, tail, parts, deadline, first=start)
        return window.end if hole is None else hole

    def _jump(self, position: int) -> None:
        self._under_way.clear()
        self.position = self._asked = position

    async def _window(self, tail: int) -> T:
        layout = self.reader.layout
        while True:
            trimmed = min(layout.view.trim_point, tail)
            if self.position < trimmed:
                gap = Gap(self.position, trimmed, GapKind.TRIMMED)
                self._jump(trimmed)
                return self.trimmed(gap)
            unknown = self._read_ahead(tail)
            if self._under_way:
                break
            if unknown is not None:
                await layout.part_at(unknown, self.reader.budget.deadline(), self.form)
        window = self._under_way.popleft()
        self._read_ahead(tail)
        asked = window.end
        try:
            deadline = self.reader.budget.longer(self.holes.seconds)
            content, data_bytes, end = await self.finish(window, tail, deadline)
        except BaseException:
            self._jump(self.position)
            raise
        average = max(1, data_bytes // max(1, end - self.position))
        most = min(self._bytes // average, self._count * 4, self.positions_max(end))
        self._count = max(_WINDOW_POSITIONS_MIN, most)
        if window.end < asked:
            self._jump(window.end)
        if end < window.end:
            window.start = end
            self._under_way.appendleft(window)
        self.position = end
        return content

    def _read_ahead(self, tail: int) -> int | None:
        """Start the next windows. Returns a position whose stripe must be looked up first."""
        while self._asked < tail and len(self._under_way) < _WINDOWS_AHEAD:
            end = min(tail, self._asked + self._count)
            try:
                window = self.start(self._asked, end, self._bytes_max)
            except StripeUnknown as unknown:
                return unknown.position
            self._under_way.append(window)
            self._asked = window.end
        return None


class EntryReader(Prefetcher[Items]):
    """Reads windows as entries and gaps, in order."""

    async def finish(self, window: Window, tail: int, deadline: Deadline) -> tuple[Items, int, int]:
        """See :class:`Prefetcher`. A window without gaps is returned as it is."""
        if window.found is None:
            decoded = DecodedWindow(window.start, window.end, self.reader.layout.macs.key)
            replies = await window.started.finish(deadline)
            for asked, reply in zip(window.parts, replies, strict=True):
                if reply.code == Code.OK:
                    decoded.add(reply.payload, asked.start, asked.striping.packed)
            if decoded.entries == len(decoded):
                self.note_fills(False)
                return cast("Items", decoded), decoded.data_bytes, window.end
            window.found = {
                position: item if isinstance(item, Entry) else gap_of(position, item)
                for position, item in decoded.found().items()
                if isinstance(item, Entry) or item in _PLAIN
            }
            rest = [p for p in range(window.start, window.end) if p not in window.found]
            await self.read_rest(window, replies, rest, decoded.data_bytes, deadline)
        end = await self.settle(window, tail, deadline)
        items = in_order(window.found.pop(position) for position in range(window.start, end))
        data_bytes = sum(len(item.data) for item in items if isinstance(item, Entry))
        return items, data_bytes, end

    def trimmed(self, gap: Gap) -> Items:
        """See :class:`Prefetcher`."""
        return [gap]

    def join(self, kept: Gap | None, content: Items, *, ends: bool) -> tuple[Items, Gap | None]:
        """See :class:`Prefetcher`."""
        if kept is not None:
            content = in_order((kept, *content))
        if ends or not isinstance(content, list):  # a window full of entries
            return content, None
        last = content[-1]
        if isinstance(last, Entry) or not self.keeps(last):
            return content, None
        return content[:-1], last


def entry_reader(reader: Reader, start: int, options: ReadOptions) -> OrderedReader[Items]:
    """Return a reader from ``start`` on, of all entries or of those with some tags."""
    if (wanted := options.wanted) is not None:
        return TagReader(reader, wanted, start, options.hole_timeout)
    if not reader.layout.io.store.pool:
        options = replace(options, window_bytes=_WINDOW_BYTES_LOCAL)
    return EntryReader(reader, start, options, _BYTES_SLACK * WINDOW_BYTES)


class RangeReader(Generic[T]):
    """Reads the log once, up to ``end``, or to the tail as of the first call.

    If ``untrimmed`` is set, it starts at the trim point as of the first call.
    """

    def __init__(
        self,
        reader: Reader,
        ordered: OrderedReader[T],
        end: int | None,
        *,
        untrimmed: bool = False,
    ) -> None:
        check_range(ordered.position, end)
        self._reader = reader
        self._ordered = ordered
        self._end = end
        self._untrimmed = untrimmed
        self._tail: int | None = None

    async def next(self) -> T | None:
        """Return the next content, which may be empty. Returns None at the end."""
        if self._tail is None:
            positions, deadline = self._reader.positions, self._reader.budget.deadline()
            self._tail = await positions.tail_up_to(self._end, deadline)
            if self._untrimmed:
                start = await positions.resolve("earliest", deadline)
                self._ordered.go_to(min(start, self._tail))
        if self._ordered.position >= self._tail:
            return None
        return await self._ordered.next(self._tail)


def range_reader(
    reader: Reader,
    start: int,
    end: int | None,
    options: ReadOptions = ReadOptions(),
    *,
    untrimmed: bool = False,
) -> RangeReader[Items]:
    """Return a reader of the entries of ``[start, end)``; see :meth:`zlog.Log.read_range`."""
    return RangeReader(reader, entry_reader(reader, start, options), end, untrimmed=untrimmed)


class Follower:
    """Reads a log from ``start`` on, and waits at the tail for more entries.

    At a hole, it waits until the position is written or filled. A follower of a `ReadOnlyStore`
    cannot fill holes, so after the hole timeout it reports a gap and continues.
    """

    def __init__(self, reader: Reader, start: int, options: ReadOptions) -> None:
        check_position(start)
        self._reader = reader
        self._tail = 0
        self._epoch = 0  # of the view in which the tail was asked for
        self._holes = HoleTimeout(reader.budget, options.hole_timeout)
        options = replace(options, passes_holes=self._passes_holes)
        self._ordered = entry_reader(reader, start, options)
        self._waits = 0

    @property
    def _passes_holes(self) -> bool:
        read_only = isinstance(self._reader.layout.io.store, ReadOnlyStore)
        return read_only and self._holes.seconds is not None

    async def next(self) -> Items:
        """Return the next batch, which is empty if nothing was appended for a while."""
        reader, layout = self._reader, self._reader.layout
        if self._ordered.position >= self._tail:
            self._epoch = layout.view.epoch
            position = self._ordered.position
            tail = await wait_for_more(reader.positions, reader.budget, position)
            if tail is None:
                return ()
            self._tail = tail
        items = await self._ordered.next(self._tail)
        if items and layout.view.epoch != self._epoch and layout.view.writer is not None:
            # The tail may be above the confirmed entries: a sequencer that was replaced by an
            # exclusive writer granted the positions between them.
            self._ordered.go_to(items[0].position)
            self._tail = 0
            return ()
        hole = None if self._passes_holes else _first_hole(items)
        if hole is None:
            self._waits = 0
            return items
        self._ordered.go_to(items[hole].position)
        if hole == 0:
            # Either the hole is open, or a sequencer that was replaced returned an invalid tail.
            self._tail = 0
            await backoff(self._reader.layout.io, self._waits)
            self._waits += 1
        return items[:hole]


async def wait_for_more(positions: Positions, budget: Budget, position: int) -> int | None:
    """Wait some seconds for the tail to pass ``position``. Returns the tail, or None."""
    return await positions.wait(position, _WAIT_SECONDS, budget.longer(_WAIT_SECONDS))


def _first_hole(items: Items) -> int | None:
    if not isinstance(items, list):  # a window full of entries
        return None
    for index, item in enumerate(items):
        if isinstance(item, Gap) and item.kind is GapKind.UNWRITTEN:
            return index
    return None
