"""What the positions of a log hold, as a picture: from all of them at once to single ones."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from zlog._audit.inspect import walk
from zlog._audit.ranges import Window
from zlog._audit.verify import Verifier
from zlog._base.deadline import Deadline
from zlog._base.names import check_range
from zlog._layout.layout import Layout
from zlog._native.audit import Audit, AuditCount
from zlog._positions.positions import Positions
from zlog.view import Stripe

CELLS_MAX = 4096

_LOOKED_MAX = 256
"""Positions of a cell that are looked at: a unit, so that most cells cost one call."""


@dataclass(frozen=True, slots=True)
class PositionCell:
    """Positions in a row, and what those of them hold that were looked at.

    All were looked at, unless there are more than 256; then 256 in their middle stand for the rest.

    Attributes:
        start: the first position.
        end: one past the last one.
        looked: positions that were looked at; the following add up to it.
        written: entries.
        filled: filled with junk, so that readers can pass.
        trimmed: no longer needed.
        unwritten: holes.
        lost: damaged or gone; in the primary copy, on Ceph.
        unreadable: stored by a newer version.
        unknown: of objects or stripes that are gone as a whole.
    """

    start: int
    end: int
    looked: int = 0
    written: int = 0
    filled: int = 0
    trimmed: int = 0
    unwritten: int = 0
    lost: int = 0
    unreadable: int = 0
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class PositionMap:
    """A range of a log's positions in cells of equal length; the last one may be shorter.

    Attributes:
        start: the first position.
        end: one past the last one; not above the tail.
        tail: of the log.
        trim_point: positions below it are trimmed.
        cells: in order, without a gap.
        stripes: that were met, in order; where cells are long there may be more in between.
    """

    start: int
    end: int
    tail: int
    trim_point: int
    cells: tuple[PositionCell, ...]
    stripes: tuple[Stripe, ...]


async def map_of(
    positions: Positions, start: int, end: int | None, cells: int, deadline: Deadline
) -> PositionMap:
    """Look at a range of a log; see :meth:`zlog.Log.position_map`."""
    check_range(start, end)
    if not 1 <= cells <= CELLS_MAX:
        raise ValueError(f"a map has 1 to {CELLS_MAX} cells, not {cells}")
    tail = await positions.tail(deadline)
    layout = positions.layout
    view = await layout.refresh(deadline)
    end = tail if end is None else min(end, tail)
    start = min(start, end)
    step = max(1, -(-(end - start) // cells))
    bounds = [(at, min(at + step, end)) for at in range(start, end, step)]
    windows: list[tuple[Window, Audit]] = []
    missing: list[int] = []  # positions of each cell of which no object is known
    audits: list[list[Audit]] = []  # one for each stripe that a cell has positions of
    stripes: dict[int, Stripe] = {}
    for first, last in bounds:
        audits.append([])
        missing.append(0)
        async for part in _parts(layout, *_looked(first, last), deadline):
            if isinstance(part, range):
                missing[-1] += len(part)
                continue
            stripe, begin, stop = part
            stripes[stripe.id] = stripe
            audits[-1].append(Audit(intervals_max=1))
            windows.append((Window(layout.objects(view, stripe), begin, stop), audits[-1][-1]))
    await Verifier(layout, lambda: deadline, keys_only=True).look_at(windows)
    made = [
        _cell(*bound, [audit.counts for audit in found], unknown)
        for bound, found, unknown in zip(bounds, audits, missing, strict=True)
    ]
    return PositionMap(
        start, end, tail, layout.view.trim_point, tuple(made), tuple(stripes.values())
    )


def _looked(start: int, end: int) -> tuple[int, int]:
    """Return which positions of a cell are looked at: aligned, so that they lie in one unit."""
    if end - start <= _LOOKED_MAX:
        return start, end
    middle = (start + end) // 2 // _LOOKED_MAX * _LOOKED_MAX
    begin = max(start, min(middle, end - _LOOKED_MAX))
    return begin, begin + _LOOKED_MAX


async def _parts(
    layout: Layout, start: int, end: int, deadline: Deadline
) -> AsyncIterator[tuple[Stripe, int, int] | range]:
    """Cut a range, without what is trimmed, by its stripes; those that are lost come as ranges."""
    begin = max(start, layout.view.trim_point)
    async for stripe in walk(layout, begin, end, lambda: deadline):
        if isinstance(stripe, range):
            yield range(stripe.start, min(stripe.stop, end))
        else:
            yield stripe, max(stripe.start, begin), min(stripe.end, end)


def _cell(start: int, end: int, counts: Sequence[AuditCount], missing: int) -> PositionCell:
    first, last = _looked(start, end)
    told = sum(sum(each) - each.bytes for each in counts) + missing
    return PositionCell(
        start=start,
        end=end,
        looked=last - first,
        written=sum(each.entries for each in counts),
        filled=sum(each.filled for each in counts),
        # Below the trim point no object is asked.
        trimmed=sum(each.trimmed for each in counts) + (last - first - told),
        unwritten=sum(each.unwritten for each in counts),
        lost=sum(each.lost for each in counts),
        unreadable=sum(each.unreadable for each in counts),
        unknown=sum(each.unknown for each in counts) + missing,
    )
