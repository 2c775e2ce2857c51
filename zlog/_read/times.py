"""Finds positions by time.

An entry stores the time of its append by its writer's clock. A log is ordered by position, so times
ascend along the log only if the writers' clocks agree. Otherwise the search finds one of the
positions at which the log passes the wanted time.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from datetime import datetime, timedelta, timezone

from zlog._base.deadline import Deadline
from zlog._read.read import Reader
from zlog.entry import Entry
from zlog.errors import StoreTimeout

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_LOOKS = (1, 64, 1024, 16384)
"""How many positions a read covers while it passes a gap. The number grows with the gap."""

_BYTES_MAX = 1
"""The data that a read may return from each object, so that only the first entry is sent."""


def as_time(when: datetime | float) -> datetime:
    """Convert a datetime, or seconds since 1970, to a datetime in UTC.

    Raises TypeError, or ValueError if a datetime has no time zone or a number is out of range.
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
        raise TypeError(f"a time must be a datetime or seconds since 1970, not {when!r}")
    try:
        if not math.isfinite(when):
            raise ValueError
        return datetime.fromtimestamp(when, timezone.utc)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{when!r} is not a valid time in seconds since 1970") from None


async def find_time(
    reader: Reader, start: int, end: int, when: datetime, deadline: Deadline
) -> int:
    """Return the first position in ``[start, end)`` whose entry is not older than ``when``.

    Returns ``end`` if all entries are older. If times decrease somewhere in the log, the result is
    one of the positions whose previous entry is older than ``when``. This is a binary search, which
    reads about log2(end - start) entries.
    """
    low, high = await _bounds(reader, start, end, when, deadline)
    found = await _search(reader, low, high, when, deadline)
    if found is None and high < end:  # the newest entries of a segment were trimmed
        found = await _search(reader, high, end, when, deadline)
    return end if found is None else found


async def _search(
    reader: Reader, low: int, high: int, when: datetime, deadline: Deadline
) -> int | None:
    found: int | None = None
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


async def _bounds(
    reader: Reader, start: int, end: int, when: datetime, deadline: Deadline
) -> tuple[int, int]:
    """Narrow a range by the times of offloaded segments, so that at most one of them is read."""
    layout, wanted = reader.layout, (when - _EPOCH) // timedelta(microseconds=1)
    await layout.list_offloaded(deadline)
    files = layout.offloaded.files()
    segments = [each for file in files for each in file.segments if each.entries]
    older = bisect_left(segments, True, key=lambda each: each.newest >= wanted)
    low = min(end, max(start, segments[older - 1].end)) if older else start
    high = min(end, segments[older].end) if older < len(segments) else end
    return low, max(low, high)


async def first_entry(reader: Reader, position: int, end: int, deadline: Deadline) -> Entry | None:
    """Return the first entry in ``[position, end)``, or None."""
    looks = 0
    while position < end:
        count = _LOOKS[min(looks, len(_LOOKS) - 1)]
        wanted = range(position, min(position + count, end))
        found = await reader.read_some(wanted, deadline, bytes_max=_BYTES_MAX)
        for each in wanted:
            slot = found.get(each)
            if isinstance(slot, Entry):
                return slot
            if slot is None:  # its object's reply was full
                break
            position = each + 1
        looks += 1
        if deadline.expired and position < end:
            raise StoreTimeout("the search for entries by their time did not finish in time")
    return None
