"""Going through a log in order: a range once, or from a position on for ever.

Both yield batches: one window of positions, read with one operation per stripe object. The next
window is asked for before the caller gets the last, so that the store works while the caller does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from zlog._views import backoff
from zlog.entry import Entry, Gap, GapKind

if TYPE_CHECKING:
    from zlog._client import LogClient
    from zlog._read import WindowRead

_WINDOW_POSITIONS_FIRST = 512
_WINDOW_POSITIONS_MIN = 16
_WINDOW_POSITIONS_MAX = 16384
_WINDOW_BYTES = 8 << 20
"""Data that one window aims at; the positions it takes are learnt from the entries so far."""

_WINDOWS_AHEAD = 2
"""Windows under way while the caller works: with the one in hand, three times _WINDOW_BYTES."""


class _Ahead:
    """Reads windows in order, some of them ahead of the one that is asked for."""

    def __init__(self, client: LogClient, position: int, hole_timeout: float | None) -> None:
        self._client = client
        self.position = position
        self._asked = position
        self._hole_timeout = hole_timeout
        self._count = _WINDOW_POSITIONS_FIRST
        self._under_way: deque[WindowRead] = deque()

    async def next(self, tail: int) -> Sequence[Entry | Gap]:
        """Return the items from ``position`` on, which lies below ``tail``."""
        trimmed = min(self._client.layout.view.trim_point, tail)
        if self.position < trimmed:
            gap = Gap(self.position, trimmed, GapKind.TRIMMED)
            self.go_to(trimmed)
            return [gap]
        self._read_ahead(tail)
        read = self._under_way.popleft()
        self._read_ahead(tail)
        try:
            window = await self._client.finish_window(read, self._hole_timeout)
        except BaseException:
            self.go_to(self.position)
            raise
        self._learn(read.end - read.start, window.data_bytes)
        self.position = read.end
        return window.items

    def go_to(self, position: int) -> None:
        """Read on from another position; what is under way is given up."""
        self._under_way.clear()
        self.position = self._asked = position

    def _read_ahead(self, tail: int) -> None:
        while self._asked < tail and len(self._under_way) < _WINDOWS_AHEAD:
            end = min(tail, self._asked + self._count)
            self._under_way.append(self._client.reader.start(self._asked, end))
            self._asked = end

    def _learn(self, positions: int, data_bytes: int) -> None:
        average = max(1, data_bytes // positions)
        wanted = min(_WINDOW_BYTES // average, self._count * 4, _WINDOW_POSITIONS_MAX)
        self._count = max(_WINDOW_POSITIONS_MIN, wanted)


class RangeReader:
    """Reads ``[start, end)`` once, as far as the tail at its beginning."""

    def __init__(
        self, client: LogClient, start: int, end: int | None, hole_timeout: float | None
    ) -> None:
        self._client = client
        self._end = end
        self._tail: int | None = None
        self._ahead = _Ahead(client, start, hole_timeout)

    async def next(self) -> Sequence[Entry | Gap] | None:
        """Return the next batch; None at the end."""
        if self._tail is None:
            tail = await self._client.tail(None)
            self._tail = tail if self._end is None else min(self._end, tail)
        if self._ahead.position >= self._tail:
            return None
        return await self._ahead.next(self._tail)


class Follower:
    """Reads from ``start`` on and waits at the tail for more. Never passes an open hole."""

    def __init__(self, client: LogClient, start: int, hole_timeout: float | None) -> None:
        self._client = client
        self._tail = 0
        self._ahead = _Ahead(client, start, hole_timeout)
        self._waits = 0

    async def next(self) -> Sequence[Entry | Gap]:
        """Return the next batch; empty when nothing came for a while."""
        if self._ahead.position >= self._tail:
            tail = await self._client.wait(self._ahead.position)
            if tail is None:
                return ()
            self._tail = tail
        items = await self._ahead.next(self._tail)
        hole = _first_hole(items)
        if hole is None:
            self._waits = 0
            return items
        self._ahead.go_to(items[hole].position)
        if hole == 0:
            # An open hole; or a sequencer that was replaced has told a tail that no longer counts.
            self._tail = 0
            await backoff(self._client.io, self._waits)
            self._waits += 1
        return items[:hole]


def _first_hole(items: Sequence[Entry | Gap]) -> int | None:
    if not isinstance(items, list):  # a window that is full of entries, not laid out
        return None
    for index, item in enumerate(items):
        if isinstance(item, Gap) and item.kind is GapKind.UNWRITTEN:
            return index
    return None
