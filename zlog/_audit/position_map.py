"""Summaries of the positions of a log."""

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
"""How many positions of a cell are checked: one stripe unit, so that most cells cost one call."""


@dataclass(frozen=True, slots=True)
class PositionCell:
    """Consecutive positions, and how many of them are in each state.

    In a cell with more than 256 positions, only the 256 positions in the middle are checked.

    Attributes:
        start: the first position.
        end: one past the last position.
        looked: the number of positions that were checked, which is the sum of all counts below.
        written: the number of entries.
        filled: the number of filled positions.
        trimmed: the number of trimmed positions.
        unwritten: the number of holes.
        lost: the number of damaged or missing positions; on Ceph, in the primary replica.
        unreadable: the number of positions that a newer version wrote.
        unknown: the number of positions whose whole object or stripe is missing.
        offloaded: the number of positions of offloaded stripes, whose files are not read.
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
    offloaded: int = 0


@dataclass(frozen=True, slots=True)
class PositionMap:
    """A range of a log's positions, in cells of equal length. The last cell may be shorter.

    Attributes:
        start: the first position.
        end: one past the last position, which is not above the tail.
        tail: the tail of the log.
        trim_point: all positions below it are trimmed.
        cells: the cells, in order and without gaps.
        stripes: the stripes of the checked positions, in order. Other stripes are left out.
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
    """Summarize a range of a log; see :meth:`zlog.Log.position_map`."""
    check_range(start, end)
    if not 1 <= cells <= CELLS_MAX:
        raise ValueError(f"a map must have 1 to {CELLS_MAX} cells, not {cells}")
    tail = await positions.tail(deadline)
    layout = positions.layout
    view = await layout.refresh(deadline)
    await layout.list_offloaded(deadline)
    end = tail if end is None else min(end, tail)
    start = min(start, end)
    step = max(1, -(-(end - start) // cells))
    bounds = [(at, min(at + step, end)) for at in range(start, end, step)]
    windows: list[tuple[Window, Audit]] = []
    missing: list[int] = []  # for each cell, how many positions have an unknown object
    offloaded: list[int] = []  # for each cell, how many positions are in files
    audits: list[list[Audit]] = []  # for each cell, one per stripe
    stripes: dict[int, Stripe] = {}
    for first, last in bounds:
        audits.append([])
        missing.append(0)
        offloaded.append(0)
        async for part in _parts(layout, *_looked(first, last), deadline):
            if isinstance(part, range):
                missing[-1] += len(part)
                continue
            stripe, begin, stop = part
            stripes[stripe.id] = stripe
            if layout.offloaded.file_of(stripe) is not None:
                offloaded[-1] += stop - begin
                continue
            audits[-1].append(Audit(intervals_max=1))
            windows.append((Window(layout.objects(view, stripe), begin, stop), audits[-1][-1]))
    verifier = Verifier(layout, lambda: deadline, keys_only=True)
    await verifier.look_at(windows)
    if verifier.vanished and await layout.outdated(view, deadline):
        return await map_of(positions, start, end, cells, deadline)  # a stripe was offloaded
    made = [
        _cell(*bound, [audit.counts for audit in found], *rest)
        for bound, found, *rest in zip(bounds, audits, missing, offloaded, strict=True)
    ]
    return PositionMap(
        start, end, tail, layout.view.trim_point, tuple(made), tuple(stripes.values())
    )


def _looked(start: int, end: int) -> tuple[int, int]:
    """Return the positions of a cell to check, aligned to a stripe unit."""
    if end - start <= _LOOKED_MAX:
        return start, end
    middle = (start + end) // 2 // _LOOKED_MAX * _LOOKED_MAX
    begin = max(start, min(middle, end - _LOOKED_MAX))
    return begin, begin + _LOOKED_MAX


async def _parts(
    layout: Layout, start: int, end: int, deadline: Deadline
) -> AsyncIterator[tuple[Stripe, int, int] | range]:
    """Split the untrimmed part of a range by stripe. Lost stripes are yielded as ranges."""
    begin = max(start, layout.view.trim_point)
    async for stripe in walk(layout, begin, end, lambda: deadline):
        if isinstance(stripe, range):
            yield range(stripe.start, min(stripe.stop, end))
        else:
            yield stripe, max(stripe.start, begin), min(stripe.end, end)


def _cell(
    start: int, end: int, counts: Sequence[AuditCount], missing: int, offloaded: int
) -> PositionCell:
    first, last = _looked(start, end)
    total = AuditCount(*map(sum, zip(*counts, (0,) * 8, strict=True)))
    known = sum(total) - total.bytes + missing + offloaded
    return PositionCell(
        start,
        end,
        last - first,
        total.entries,
        total.filled,
        total.trimmed + (last - first - known),  # positions below the trim point are not checked
        total.unwritten,
        total.lost,
        total.unreadable,
        total.unknown + missing,
        offloaded,
    )
