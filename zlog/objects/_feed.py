"""Reads the entries of a space in order, either by their tag or among all entries of the log.

Reading all entries is up to ten times as fast if most of them belong to the space. So the feed
estimates the cost of both ways after each read, and changes to the cheaper one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from zlog import Columns, Gap
from zlog.extension import LogPort

_SELECTED = 12
_BYTES = 64
"""The cost of a selected entry, and the number of bytes with the same cost, relative to reading one
entry among all."""

_POSITIONS_MIN = 64
"""A window with fewer entries is not used for the estimate."""


class Window(NamedTuple):
    """One window of the log, and which of its entries belong to a space.

    Attributes:
        columns: all entries of the window. Some may belong to other spaces or programs.
        rows: the indexes, in ``columns``, of the entries that belong to the space.
        gaps: the positions of the window that hold no entry.
    """

    columns: Columns
    rows: Sequence[int]
    gaps: list[Gap]


class Feed:
    """Reads the log from a position on, and finds the entries of one space.

    Args:
        port: gives access to the log.
        tag: the tag that all entries of the space have.
        position: the position at which to begin.
    """

    def __init__(self, port: LogPort, tag: str, position: int) -> None:
        self._port = port
        self._tag = tag
        self._selects = False
        self.go_to(position)

    @property
    def position(self) -> int:
        """The next position."""
        return self._ahead.position

    def go_to(self, position: int) -> None:
        """Continue at another position."""
        self._told = position  # the reader may be ahead, if it has a gap that may continue
        self._ahead = self._port.columns(position, self._tag if self._selects else None)

    async def next(self, tail: int) -> Iterator[Window]:
        """Return the next windows below ``tail``, if any."""
        start = self._ahead.position
        found = [self._window(each) for each in await self._ahead.next(tail)]
        self._told = self._ahead.position if self._selects else _end(found, self._told)
        self._decide(found, self._ahead.position - start)
        return iter(found)

    def _window(self, columns: Columns) -> Window:
        if columns.tags is None:
            return Window(columns, range(len(columns)), columns.gaps)
        tag = self._tag
        rows = [i for i, tags in enumerate(columns.tags) if tag in tags]
        return Window(columns, rows, columns.gaps)

    def _decide(self, found: Sequence[Window], positions: int) -> None:
        """Change to the other way of reading if it would have cost less."""
        if positions < _POSITIONS_MIN:
            return
        own = sum(len(each.rows) for each in found)
        if self._selects:
            cheaper = positions < own * _SELECTED // 2
        else:
            offsets = [(each.columns.offsets, each.rows) for each in found]
            data = sum(each.columns.data_bytes for each in found)
            mine = sum(ends[i + 1] - ends[i] for ends, rows in offsets for i in rows)
            cheaper = own * _SELECTED < positions - own + (data - mine) // _BYTES
        if cheaper:
            self._selects = not self._selects
            self.go_to(self._told)


def _end(found: Sequence[Window], start: int) -> int:
    """Return the end of windows that cover every position from ``start`` on."""
    if not found:
        return start
    columns = found[-1].columns
    entry = columns.positions[-1] + 1 if len(columns) else start
    return max(entry, columns.gaps[-1].end if columns.gaps else start)
