"""Finding positions by time.

Entries carry the time at which their writers appended them, by the writers' clocks. A log's order
is that of its positions, not of these clocks, so times rise along a log only as far as the clocks
agree. What is found is then one of the places where the log passes the time asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Protocol

from zlog._base.deadline import Deadline
from zlog.entry import Entry
from zlog.errors import StoreTimeout

if TYPE_CHECKING:
    from zlog._read.items import Slot

_LOOKS = (1, 64, 1024, 16384)
"""Positions looked at in one go while passing over a gap, growing as the gap does."""

_BYTES_MAX = 1
"""Data that one look may bring back from each object: its first entry, and no more."""


class Looker(Protocol):
    """What the search needs of a reader."""

    async def read_some(
        self, positions: Sequence[int], deadline: Deadline, *, bytes_max: int
    ) -> dict[int, Slot]:
        """Read positions as they are, at least the first one of each object."""
        ...


def as_time(when: datetime | float) -> datetime:
    """Return a point in time, UTC, from a datetime or from seconds since 1970.

    Raises:
        TypeError: it is neither.
        ValueError: a datetime without a time zone, or a number that is no time.
    """
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise ValueError(
                f"{when!r} has no time zone: add one, as in datetime.now(timezone.utc)"
            )
        try:
            return when.astimezone(timezone.utc)
        except OverflowError:
            raise ValueError(f"{when!r} is before the year 1 or after 9999 in UTC") from None
    if isinstance(when, bool) or not isinstance(when, (int, float)):
        raise TypeError(f"a time is a datetime or seconds since 1970, not {when!r}")
    try:
        if not math.isfinite(when):
            raise ValueError
        return datetime.fromtimestamp(when, timezone.utc)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{when!r} is no time in seconds since 1970") from None


async def find_time(
    reader: Looker, start: int, end: int, when: datetime, deadline: Deadline
) -> int:
    """Return the first position in ``[start, end)`` whose entry is not older than ``when``.

    ``end`` when every entry is older. Where times fall along the log, it is a position whose entry
    is not older than ``when`` and follows upon one that is.

    A binary search: some looks at single entries, about log2(end - start). Positions that hold no
    entry are passed over, in long steps.
    """
    found, low, high = end, start, end
    while low < high:
        middle = (low + high) // 2
        entry = await first_entry(reader, middle, high, deadline)
        if entry is None:
            high = middle
        elif entry.timestamp >= when:
            found, high = entry.position, middle
        else:
            low = entry.position + 1
    return found


async def first_entry(reader: Looker, position: int, end: int, deadline: Deadline) -> Entry | None:
    """Return the first entry in ``[position, end)``, or None when there is none."""
    looks = 0
    while position < end:
        count = _LOOKS[min(looks, len(_LOOKS) - 1)]
        wanted = range(position, min(position + count, end))
        found = await reader.read_some(wanted, deadline, bytes_max=_BYTES_MAX)
        for each in wanted:
            slot = found.get(each)
            if isinstance(slot, Entry):
                return slot
            if slot is None:  # its object has told as much as it may
                break
            position = each + 1
        looks += 1
        if deadline.expired and position < end:
            raise StoreTimeout("the time was up while entries were looked for by their time")
    return None
