"""How much of a log is kept: by age, by bytes, by entries. Enforced by trimming.

The settings are options of the log's view, so that every client that can trim can enforce them: the
command ``zlog retention --apply``, :meth:`zlog.Log.apply_retention`, and the sequencer that leads.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from zlog._base.deadline import Deadline
from zlog._base.options import RETENTION_AGE, RETENTION_BYTES, RETENTION_ENTRIES, amount
from zlog._layout.layout import Layout
from zlog._layout.reconfigure import reconfigure
from zlog._layout.stat import object_stats
from zlog._read.read import Reader
from zlog._read.times import find_crossing
from zlog._trim.trim import trim_to
from zlog.errors import HeldByCursor, UnsupportedVersion
from zlog.view import OPEN_END


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept of a log; what goes beyond any of these limits is trimmed.

    Attributes:
        age: seconds since an entry was appended, by its writer's clock; None: any.
        bytes: data of the newest entries together; None: any number.
        entries: the newest positions; None: any number.
    """

    age: float | None = None
    bytes: int | None = None
    entries: int | None = None

    def __post_init__(self) -> None:
        age = 0 if self.age is None else self.age
        if not (isinstance(age, (int, float)) and math.isfinite(age) and age >= 0):
            raise ValueError(f"an age is a number of seconds, not {self.age!r}")
        for what, limit in (("bytes", self.bytes), ("entries", self.entries)):
            if limit is not None and (not isinstance(limit, int) or limit < 0):
                raise ValueError(f"{what} to keep are a number, not {limit!r}")

    @property
    def unlimited(self) -> bool:
        """Whether everything is kept."""
        return self == Retention()

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Retention:
        """Read the settings from a view's options.

        An option that is no number counts as not set: nothing is trimmed for a typing error's sake.
        """
        age = amount(options.get(RETENTION_AGE))
        size, entries = amount(options.get(RETENTION_BYTES)), amount(options.get(RETENTION_ENTRIES))
        return cls(
            age, None if size is None else int(size), None if entries is None else int(entries)
        )

    def options(self) -> dict[str, str | None]:
        """Return the settings as options to reconfigure a log with; None takes one away."""
        limits = {
            RETENTION_AGE: self.age,
            RETENTION_BYTES: self.bytes,
            RETENTION_ENTRIES: self.entries,
        }
        return {key: None if each is None else f"{each:.15g}" for key, each in limits.items()}


async def set_retention(layout: Layout, retention: Retention, deadline: Deadline) -> None:
    """Set what is kept of a log from now on: a new view, in which only the options differ."""
    if not isinstance(retention, Retention):
        raise TypeError(f"expected a Retention, as in Retention(age=3600), not {retention!r}")
    await reconfigure(layout, None, retention.options(), deadline)


async def enforce(reader: Reader, deadline: Deadline) -> int:
    """Trim what a log's settings say need not be kept. Returns the trim point.

    No cursor is passed: what a reader has not read yet is kept for it. Bounded work where it is
    done often: a binary search, one look at every stripe object, and a trim. If it dies half-way,
    the next one goes on.
    """
    view = await reader.layout.refresh(deadline)
    retention = Retention.of(view.options)
    if retention.unlimited:
        return view.trim_point
    tail = await reader.positions.tail(deadline)
    point = await _first_to_keep(reader, retention, view.trim_point, tail, deadline)
    return await _trim_up_to(reader.layout, point, deadline)


async def _first_to_keep(
    reader: Reader, retention: Retention, start: int, tail: int, deadline: Deadline
) -> int:
    """Return the first position in ``[start, tail]`` that goes beyond none of the limits."""
    point = start
    if retention.entries is not None:
        point = max(point, tail - retention.entries)
    if retention.age is not None:
        oldest = _oldest(reader.layout.io.wall_clock_us(), retention.age)
        crossing = await find_crossing(reader, point, tail, oldest, deadline)
        # Not up to the first entry to keep: what holds none yet may be about to hold a new one.
        point = max(point, crossing.older_end)
    if retention.bytes is not None:
        first = await _first_within(reader.layout, retention.bytes, point, tail, deadline)
        point = max(point, first)
    return point


def _oldest(now_us: int, age: float) -> datetime:
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    seconds = max(now_us / 1e6 - age, 0.0)  # nothing is older than that
    return epoch + timedelta(seconds=seconds)


async def _trim_up_to(layout: Layout, point: int, deadline: Deadline) -> int:
    """Trim to ``point``, or to the lowest cursor if that comes first."""
    while point > layout.view.trim_point:
        try:
            await trim_to(layout, point, deadline)
            break
        except HeldByCursor as held:
            point = held.position
    return layout.view.trim_point


class _Span(NamedTuple):
    """Positions ``[start, end)`` of one stripe that are not trimmed, and their data in bytes."""

    start: int
    end: int
    bytes: float

    def above(self, position: int) -> _Span:
        """Return what of it is at ``position`` or above, all entries being of average size."""
        start = min(max(self.start, position), self.end)
        length = self.end - self.start
        return _Span(start, self.end, self.bytes * (self.end - start) / length if length else 0)


async def _first_within(
    layout: Layout, bytes_max: int, start: int, tail: int, deadline: Deadline
) -> int:
    """Return the first of the newest positions whose data is ``bytes_max`` at most.

    The objects know how many bytes they hold, so whole stripes are counted exactly. Inside the
    stripe where the limit falls, all entries are taken for as large as their average.
    """
    spans = [span.above(start) for span in await _spans(layout, tail, deadline)]
    excess = sum(span.bytes for span in spans) - bytes_max
    for span in spans:
        if excess <= 0:
            break
        if excess < span.bytes:
            return span.start + math.ceil((span.end - span.start) * (excess / span.bytes))
        excess -= span.bytes
        start = max(start, span.end)
    return start


async def _spans(layout: Layout, tail: int, deadline: Deadline) -> list[_Span]:
    """Ask the objects of all stripes what they hold, a stripe after the other."""
    point = layout.view.trim_point
    # Space that an earlier trim did not come to free would be taken for that of entries, as is what
    # an older class can't free.
    with contextlib.suppress(UnsupportedVersion):
        await trim_to(layout, point, deadline)
    found: list[_Span] = []
    async for stripe in layout.stripes(point, tail, deadline):
        stats = await object_stats(layout, stripe, deadline)
        end = min(stripe.end, tail)
        if stripe.end == OPEN_END:  # what lies above all that is taken may still be written
            taken = (stat.highest + 1 for stat in stats if stat.highest is not None)
            end = min(end, max(taken, default=stripe.start))
        start = min(max(stripe.start, point), end)
        found.append(_Span(start, end, sum(stat.bytes for stat in stats)))
    return found
