"""Entries whose MACs are not of the log's key: only a client that has it can look for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zlog._audit.ranges import Window
from zlog._base.deadline import Deadline
from zlog._read.read import READ_BYTES_MAX, Reader
from zlog.entry import Gap, GapKind

_POSITIONS = 4096
_BYTES = 16 << 20
"""What is read in one go, at most, of all objects together."""


class MacCheck:
    """Reads entries to check their MACs, and forgets them. Of a log without MACs it reads none.

    Attributes:
        forged: how many were found.
    """

    def __init__(self, reader: Reader, deadline: Callable[[], Deadline]) -> None:
        self._reader = reader
        self._deadline = deadline
        self.forged = 0

    async def look(self, window: Window) -> Sequence[range]:
        """Return the positions of a window at which something is forged, in ascending order."""
        if self._reader.layout.macs.key is None:
            return []
        share = min(READ_BYTES_MAX, max(1, _BYTES // len(window.refs)))
        rows: list[range] = []
        for start in range(window.start, window.end, _POSITIONS):
            left: Sequence[int] = range(start, min(start + _POSITIONS, window.end))
            forged: list[int] = []
            while left:
                found = await self._reader.read_some(left, self._deadline(), bytes_max=share)
                forged += (p for p, slot in found.items() if _is_forged(slot))
                left = [p for p in left if p not in found]
            rows += (range(p, p + 1) for p in sorted(forged))
        self.forged += len(rows)
        return rows


def _is_forged(slot: object) -> bool:
    return isinstance(slot, Gap) and slot.kind is GapKind.FORGED
