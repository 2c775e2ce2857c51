"""Reading entries and gaps in order: a range once, or from a position on for ever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar, cast

from zlog._base.codes import Code, State
from zlog._base.deadline import Deadline, Timeout
from zlog._base.names import check_position, check_range
from zlog._base.settings import Budget
from zlog._layout.views import backoff
from zlog._native.window import Window as DecodedWindow
from zlog._positions.positions import Positions
from zlog._read.holes import HoleTimeout
from zlog._read.items import gap_of, in_order
from zlog._read.prefetch import BYTES_SLACK, WINDOW_BYTES, OrderedReader, Prefetcher
from zlog._read.read import Reader, Window
from zlog._read.select import TagReader, Wanted
from zlog.entry import Entry, Gap, GapKind
from zlog.read_only import ReadOnlyStore

T = TypeVar("T")

Items = Sequence[Entry | Gap]

_WINDOW_BYTES_LOCAL = 1 << 20
"""Data that a window aims at if this process reads the store itself: what a window returns is then
still in the processor's cache when it is checked, and when it becomes entries."""

_WAIT_SECONDS = 5.0
"""How long a follower waits for a new entry at the sequencer, before it asks again."""

_PLAIN = (State.UNWRITTEN, State.TRIMMED)
"""Gaps that a window reports completely. Who filled a position, or what lost it, is read later."""


class EntryReader(Prefetcher[Items]):
    """Reads windows as entries and gaps, in order."""

    async def finish(self, window: Window, tail: int, deadline: Deadline) -> tuple[Items, int, int]:
        """See :class:`Prefetcher`. A window full of entries is returned as it is."""
        if window.found is None:
            decoded = DecodedWindow(window.start, window.end, self.reader.layout.macs.key)
            replies = await window.started.finish(deadline)
            for asked, reply in zip(window.parts, replies, strict=True):
                if reply.code == Code.OK:
                    decoded.add(reply.payload, asked.start, asked.spacing.packed)
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


def entry_reader(
    reader: Reader,
    budget: Budget,
    start: int,
    hole_timeout: Timeout,
    wanted: Wanted | None,
    *,
    passes_holes: bool,
) -> OrderedReader[Items]:
    """Return what reads entries from ``start`` on: all, or those with the tags in ``wanted``."""
    hole_seconds = budget.hole_timeout(hole_timeout)
    if wanted is not None:
        return TagReader(reader, budget, wanted, start, HoleTimeout(hole_seconds))
    local = not reader.layout.io.store.pool
    window_bytes = _WINDOW_BYTES_LOCAL if local else WINDOW_BYTES
    bytes_max = BYTES_SLACK * WINDOW_BYTES
    return EntryReader(
        reader, budget, start, hole_seconds, window_bytes, bytes_max, passes_holes=passes_holes
    )


class RangeReader(Generic[T]):
    """Reads once up to the tail at the first call, or up to an end before it.

    Args:
        positions: returns the tail.
        budget: of the handle.
        ordered: reads from the start of the range on.
        end: the first position that is not read; None for the tail.
    """

    def __init__(
        self, positions: Positions, budget: Budget, ordered: OrderedReader[T], end: int | None
    ) -> None:
        check_range(ordered.position, end)
        self._positions = positions
        self._budget = budget
        self._ordered = ordered
        self._end = end
        self._tail: int | None = None

    async def next(self) -> T | None:
        """Return what is next, which may be nothing; None at the end."""
        if self._tail is None:
            self._tail = await self._positions.tail_up_to(self._end, self._budget.deadline())
        if self._ordered.position >= self._tail:
            return None
        return await self._ordered.next(self._tail)


def range_reader(
    reader: Reader,
    budget: Budget,
    start: int,
    end: int | None,
    hole_timeout: Timeout = ...,
    wanted: Wanted | None = None,
) -> RangeReader[Items]:
    """Return what reads the entries of ``[start, end)`` once; see :meth:`zlog.Log.read_range`."""
    ordered = entry_reader(reader, budget, start, hole_timeout, wanted, passes_holes=True)
    return RangeReader(reader.positions, budget, ordered, end)


class Follower:
    """Reads from ``start`` on and waits at the tail for more. Never passes an open hole.

    Through a `ReadOnlyStore` it does, once it has waited: a client that can't write fills no hole,
    and would wait at one until another reader comes.
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
        read_only = isinstance(reader.layout.io.store, ReadOnlyStore)
        self._passes_holes = read_only and budget.hole_timeout(hole_timeout) is not None
        self._ordered = entry_reader(
            reader, budget, start, hole_timeout, wanted, passes_holes=self._passes_holes
        )
        self._waits = 0

    async def next(self) -> Items:
        """Return the next batch; empty when nothing came for a while."""
        if self._ordered.position >= self._tail:
            tail = await wait_for_more(self._reader.positions, self._budget, self._ordered.position)
            if tail is None:
                return ()
            self._tail = tail
        items = await self._ordered.next(self._tail)
        hole = None if self._passes_holes else _first_hole(items)
        if hole is None:
            self._waits = 0
            return items
        self._ordered.go_to(items[hole].position)
        if hole == 0:
            # An open hole; or a sequencer that was replaced has returned a tail that is not valid.
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
