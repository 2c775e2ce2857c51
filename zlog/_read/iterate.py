"""Going through a log in order: a range once, or from a position on for ever.

Both yield batches: one window of positions, read with one operation per stripe object. The next
window is asked for before the caller gets the last, so that the store works while the caller does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from zlog._base.deadline import Timeout
from zlog._base.names import check_position, check_range
from zlog._base.settings import Budget
from zlog._layout.layout import StripeUnknown
from zlog._layout.views import backoff
from zlog._positions.positions import Positions
from zlog._read.holes import Patience
from zlog._read.items import joined
from zlog._read.read import Reader, WindowItems, WindowRead
from zlog._read.select import Selection, Wanted
from zlog.entry import Entry, Gap, GapKind
from zlog.read_only import ReadOnlyStore

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_WINDOW_POSITIONS_FIRST = 512
_WINDOW_POSITIONS_MIN = 16
WINDOW_POSITIONS_MAX = 16384
WINDOW_BYTES = 8 << 20
"""Data that one window aims at; the positions it takes are learnt from the entries so far."""

_WINDOW_BYTES_HERE = 1 << 20
"""The same where this process reads the store itself: what a window brings is then still in the
processor's cache when it is checked, and when it becomes entries."""

_BYTES_SLACK = 2
"""By how much larger than expected entries may be, before a window is read in several goes."""

_WAIT_SECONDS = 5.0
"""How long a follower waits for a new entry at the sequencer, before it asks again."""

_WINDOWS_AHEAD = 2
"""Windows under way while the caller works: with the one in hand, three times WINDOW_BYTES."""


class Windows(Protocol[T]):
    """How windows are read, and what a reader gets of them."""

    def positions_max(self, start: int) -> int:
        """Return how many positions from ``start`` on one window may take."""
        ...

    def start(self, start: int, end: int, bytes_max: int) -> WindowRead:
        """Start reading a window, which may end earlier, of so much data."""
        ...

    async def finish(self, read: WindowRead, tail: int) -> tuple[T, int, int]:
        """Bring it in: its content, the bytes of data in that, and where the content ends.

        That is the window's end, which may be lower than asked for, or a hole: then the rest of
        it comes by another call. Positions below ``tail`` are read after it.
        """
        ...

    def trimmed(self, gap: Gap) -> T:
        """Return the content of positions that need not be read."""
        ...

    def cut(self, content: T) -> tuple[T, Gap | None]:
        """Take off the gap that the content ends with, if it does."""
        ...

    def put(self, gap: Gap, content: T) -> T:
        """Return the content with a gap before it, as one with its first gap if they agree."""
        ...


class Ahead(Generic[T]):
    """Reads windows in order, some of them ahead of the one that is asked for.

    A gap that a window ends with is kept back until it is known whether the next one goes on with
    it; not at the tail, where there is no next one, nor a hole if the reader stops there.

    Raises:
        KeyNeeded: the log's entries have MACs, and this client can't check them.
    """

    def __init__(
        self,
        reader: Reader,
        budget: Budget,
        windows: Windows[T],
        position: int,
        window_bytes: int,
        bytes_max: int | None = None,
        *,
        passes_holes: bool = False,
    ) -> None:
        """Read from ``position`` on.

        Args:
            reader, budget, windows: what reads them.
            position: the first.
            window_bytes: data that one window aims at.
            bytes_max: data that it may bring; twice as much, unless given.
            passes_holes: whether the reader reads on after a hole that stays open.
        """
        reader.layout.macs.check_key()
        self._layout = reader.layout
        self._budget = budget
        self._windows = windows
        self.position = position
        self._asked = position
        self._bytes = window_bytes
        self._bytes_max = _BYTES_SLACK * window_bytes if bytes_max is None else bytes_max
        self._count = _WINDOW_POSITIONS_FIRST
        self._under_way: deque[WindowRead] = deque()
        self._kept: Gap | None = None
        self._passes_holes = passes_holes

    async def next(self, tail: int) -> T:
        """Return what is there from ``position`` on, which lies below ``tail``; may be nothing."""
        content = await self._window(tail)
        if self._kept is not None:
            content = self._windows.put(self._kept, content)
            self._kept = None
        if self.position < tail:
            rest, gap = self._windows.cut(content)
            if gap is not None and (self._passes_holes or gap.kind is not GapKind.UNWRITTEN):
                content, self._kept = rest, gap
        return content

    def go_to(self, position: int) -> None:
        """Read on from another position; what is under way or kept back is given up."""
        self._kept = None
        self._jump(position)

    def _jump(self, position: int) -> None:
        self._under_way.clear()
        self.position = self._asked = position

    async def _window(self, tail: int) -> T:
        layout = self._layout
        while True:
            trimmed = min(layout.view.trim_point, tail)
            if self.position < trimmed:
                gap = Gap(self.position, trimmed, GapKind.TRIMMED)
                self._jump(trimmed)
                return self._windows.trimmed(gap)
            await self._read_ahead(tail)
            if self._under_way:
                break
        read = self._under_way.popleft()
        await self._read_ahead(tail)
        asked = read.end
        try:
            content, data_bytes, end = await self._windows.finish(read, tail)
        except BaseException:
            self._jump(self.position)
            raise
        self._learn(self.position, end, data_bytes)
        if read.end < asked:
            self._jump(read.end)
        if end < read.end:
            self._under_way.appendleft(read)
        self.position = end
        return content

    async def _read_ahead(self, tail: int) -> None:
        while self._asked < tail and len(self._under_way) < _WINDOWS_AHEAD:
            end = min(tail, self._asked + self._count)
            try:
                read = self._windows.start(self._asked, end, self._bytes_max)
            except StripeUnknown as unknown:
                deadline = self._budget.deadline()
                if await self._layout.stripe_at(unknown.position, deadline) is None:
                    return  # trimmed meanwhile, with its stripe
                continue
            self._under_way.append(read)
            self._asked = read.end

    def _learn(self, start: int, end: int, data_bytes: int) -> None:
        average = max(1, data_bytes // max(1, end - start))
        most = self._windows.positions_max(end)
        wanted = min(self._bytes // average, self._count * 4, most)
        self._count = max(_WINDOW_POSITIONS_MIN, wanted)


class _Items:
    """Windows as entries and gaps, in order."""

    def __init__(self, reader: Reader, budget: Budget, hole_timeout: float | None) -> None:
        self._reader = reader
        self._budget = budget
        self._patience = Patience(hole_timeout)

    def positions_max(self, _: int) -> int:
        return WINDOW_POSITIONS_MAX

    def start(self, start: int, end: int, bytes_max: int) -> WindowRead:
        return self._reader.start(start, end, bytes_max)

    async def finish(self, read: WindowRead, tail: int) -> WindowItems:
        deadline = self._budget.longer(self._patience.seconds)
        return await self._reader.finish(read, self._patience, tail, deadline)

    def trimmed(self, gap: Gap) -> Sequence[Entry | Gap]:
        return [gap]

    def cut(self, content: Sequence[Entry | Gap]) -> tuple[Sequence[Entry | Gap], Gap | None]:
        if not isinstance(content, list):  # a window that is full of entries, not laid out
            return content, None
        last = content[-1]
        return (content, None) if isinstance(last, Entry) else (content[:-1], last)

    def put(self, gap: Gap, content: Sequence[Entry | Gap]) -> Sequence[Entry | Gap]:
        first = content[0]
        one = joined(gap, first) if isinstance(first, Gap) else None
        return [gap, *content] if one is None else [one, *content[1:]]


def _items_ahead(
    reader: Reader,
    budget: Budget,
    start: int,
    hole_timeout: Timeout,
    wanted: Wanted | None,
    *,
    passes_holes: bool,
) -> Ahead[Sequence[Entry | Gap]] | Selection:
    if wanted is not None:
        patience = Patience(budget.hole_timeout(hole_timeout))
        return Selection(reader, budget, wanted, start, patience)
    windows = _Items(reader, budget, budget.hole_timeout(hole_timeout))
    here = not reader.layout.io.store.pool
    window_bytes = _WINDOW_BYTES_HERE if here else WINDOW_BYTES
    bytes_max = _BYTES_SLACK * WINDOW_BYTES
    return Ahead(reader, budget, windows, start, window_bytes, bytes_max, passes_holes=passes_holes)


class InOrder(Protocol[T_co]):
    """What reads on from a position, as far as it is told that the log goes."""

    @property
    def position(self) -> int:
        """Where it goes on."""
        ...

    async def next(self, tail: int) -> T_co:
        """Return what is there from ``position`` on, which lies below ``tail``; may be nothing."""
        ...


class Bounded(Generic[T]):
    """Reads once as far as the tail at its beginning, or as an end before it.

    Args:
        positions: tell the tail.
        budget: of the handle.
        ahead: reads the windows.
        end: the first position that is not read; None for the tail.
    """

    def __init__(
        self, positions: Positions, budget: Budget, ahead: InOrder[T], end: int | None
    ) -> None:
        self._positions = positions
        self._budget = budget
        self._ahead = ahead
        self._end = end
        self._tail: int | None = None

    async def next(self) -> T | None:
        """Return what is next, which may be nothing; None at the end."""
        if self._tail is None:
            self._tail = await self._positions.tail_up_to(self._end, self._budget.deadline())
        if self._ahead.position >= self._tail:
            return None
        return await self._ahead.next(self._tail)


class RangeReader(Bounded[Sequence[Entry | Gap]]):
    """Reads ``[start, end)`` once, as far as the tail at its beginning."""

    def __init__(
        self,
        reader: Reader,
        budget: Budget,
        start: int,
        end: int | None,
        hole_timeout: Timeout = ...,
        wanted: Wanted | None = None,
    ) -> None:
        check_range(start, end)
        ahead = _items_ahead(reader, budget, start, hole_timeout, wanted, passes_holes=True)
        super().__init__(reader.positions, budget, ahead, end)


class Follower:
    """Reads from ``start`` on and waits at the tail for more. Never passes an open hole.

    Through a `ReadOnlyStore` it does, once it has waited: a client that looks from aside closes no
    hole, and would stand before one for as long as no other reader comes.
    """

    def __init__(
        self,
        reader: Reader,
        budget: Budget,
        start: int,
        hole_timeout: Timeout = ...,
        wanted: Wanted | None = None,
    ) -> None:
        check_position(start)
        self._reader = reader
        self._budget = budget
        self._tail = 0
        waits_for_ever = budget.hole_timeout(hole_timeout) is None
        aside = isinstance(reader.layout.io.store, ReadOnlyStore)
        self._passes_holes = passes_holes = aside and not waits_for_ever
        self._ahead = _items_ahead(
            reader, budget, start, hole_timeout, wanted, passes_holes=passes_holes
        )
        self._waits = 0

    async def next(self) -> Sequence[Entry | Gap]:
        """Return the next batch; empty when nothing came for a while."""
        if self._ahead.position >= self._tail:
            tail = await wait_for_more(self._reader.positions, self._budget, self._ahead.position)
            if tail is None:
                return ()
            self._tail = tail
        items = await self._ahead.next(self._tail)
        hole = None if self._passes_holes else _first_hole(items)
        if hole is None:
            self._waits = 0
            return items
        self._ahead.go_to(items[hole].position)
        if hole == 0:
            # An open hole; or a sequencer that was replaced has told a tail that no longer counts.
            self._tail = 0
            await backoff(self._reader.layout.io, self._waits)
            self._waits += 1
        return items[:hole]


async def wait_for_more(positions: Positions, budget: Budget, position: int) -> int | None:
    """Wait some seconds for the tail to pass ``position``. Returns the tail, or None."""
    return await positions.wait(position, _WAIT_SECONDS, budget.longer(_WAIT_SECONDS))


def _first_hole(items: Sequence[Entry | Gap]) -> int | None:
    if not isinstance(items, list):  # a window that is full of entries, not laid out
        return None
    for index, item in enumerate(items):
        if isinstance(item, Gap) and item.kind is GapKind.UNWRITTEN:
            return index
    return None
