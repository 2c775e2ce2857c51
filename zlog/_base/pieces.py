"""Consecutive positions of a log, with everything that is stored about them."""

from __future__ import annotations

from typing import NamedTuple

from zlog._native.new_entries import NewEntry


class Batch(NamedTuple):
    """Entries with the same writer and time, and with consecutive numbers."""

    start: int
    timestamp: int
    writer: bytes
    number: int
    entries: list[NewEntry]

    @property
    def end(self) -> int:
        """One past the last position."""
        return self.start + len(self.entries)

    def precedes(self, writer: bytes, timestamp: int, number: int) -> bool:
        """Whether an entry can be the next one of this batch."""
        return (
            self.writer == writer
            and self.timestamp == timestamp
            and self.number + len(self.entries) == number
        )


class Filled(NamedTuple):
    """Positions that one client filled at one time and for one reason (a FillCode)."""

    start: int
    end: int
    timestamp: int
    writer: bytes
    reason: int


class Trimmed(NamedTuple):
    """Trimmed positions."""

    start: int
    end: int


class Lost(NamedTuple):
    """Positions whose contents were lost before the stripe was offloaded."""

    start: int
    end: int
