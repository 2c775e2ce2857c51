"""Going through a log in order: a range once, or from a position on for ever.

Both yield batches: one window of positions, read with one operation per stripe object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from zlog._views import backoff
from zlog.entry import Entry, Gap, GapKind

if TYPE_CHECKING:
    from zlog._client import LogClient

_WINDOW_POSITIONS_FIRST = 256
_WINDOW_POSITIONS_MIN = 16
_WINDOW_POSITIONS_MAX = 4096
_WINDOW_BYTES = 16 << 20
"""Data that one window aims at; the positions it takes are learnt from the entries so far."""


class _Windows:
    """Cuts a long range into windows, so that memory stays bounded."""

    def __init__(self) -> None:
        self._count = _WINDOW_POSITIONS_FIRST

    def end(self, start: int, end: int) -> int:
        """Return where the window that begins at ``start`` ends."""
        return min(end, start + self._count)

    def learn(self, items: Sequence[Entry | Gap]) -> None:
        """Take the sizes of a window's entries into account for the next."""
        size = sum(len(item.data) for item in items if isinstance(item, Entry))
        average = max(1, size // max(1, len(items)))
        wanted = min(_WINDOW_BYTES // average, self._count * 4, _WINDOW_POSITIONS_MAX)
        self._count = max(_WINDOW_POSITIONS_MIN, wanted)


class RangeReader:
    """Reads ``[start, end)`` once, as far as the tail at its beginning."""

    def __init__(
        self, client: LogClient, start: int, end: int | None, hole_timeout: float | None
    ) -> None:
        self._client = client
        self._position = start
        self._end = end
        self._tail: int | None = None
        self._hole_timeout = hole_timeout
        self._windows = _Windows()

    async def next(self) -> Sequence[Entry | Gap] | None:
        """Return the next batch; None at the end."""
        if self._tail is None:
            tail = await self._client.tail(None)
            self._tail = tail if self._end is None else min(self._end, tail)
        if self._position >= self._tail:
            return None
        end = self._windows.end(self._position, self._tail)
        items = await self._client.window(self._position, end, self._hole_timeout, self._tail)
        self._windows.learn(items)
        self._position = _end_of(items[-1])
        return items


class Follower:
    """Reads from ``start`` on and waits at the tail for more. Never passes an open hole."""

    def __init__(self, client: LogClient, start: int, hole_timeout: float | None) -> None:
        self._client = client
        self._position = start
        self._tail = 0
        self._hole_timeout = hole_timeout
        self._windows = _Windows()
        self._waits = 0

    async def next(self) -> Sequence[Entry | Gap]:
        """Return the next batch; empty when nothing came for a while."""
        if self._position >= self._tail:
            tail = await self._client.wait(self._position)
            if tail is None:
                return ()
            self._tail = tail
        end = self._windows.end(self._position, self._tail)
        items = await self._client.window(self._position, end, self._hole_timeout, self._tail)
        settled = _before_hole(items)
        if settled:
            self._waits = 0
            self._windows.learn(settled)
            self._position = _end_of(settled[-1])
        else:
            await backoff(self._client.io, self._waits)
            self._waits += 1
        return settled


def _end_of(item: Entry | Gap) -> int:
    return item.end if isinstance(item, Gap) else item.position + 1


def _before_hole(items: Sequence[Entry | Gap]) -> Sequence[Entry | Gap]:
    for index, item in enumerate(items):
        if isinstance(item, Gap) and item.kind is GapKind.UNWRITTEN:
            return items[:index]
    return items
