"""Holes in a row: how long a reader waits for them, and how it passes very many at once.

A client may take a million positions and write none of them.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from zlog._base.codes import ENTRIES_MAX, Code, FillCode
from zlog._base.deadline import Deadline
from zlog._base.io import Call
from zlog._base.striping import Places
from zlog._layout.layout import Layout
from zlog._native import messages
from zlog.view import View

_GROWTH = 4
"""By how much longer than what was found unwritten the next run of positions is that is filled."""


class HoleTimeout:
    """How long one reader waits for holes.

    It waits once for all positions that were granted before it began to wait: the holes after the
    first one have been open as long.

    Attributes:
        seconds: to wait for a hole before it is filled; None: holes are left alone.
        overdue: positions below it have been waited for.
    """

    __slots__ = ("overdue", "seconds")

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.overdue = 0


async def fill_ahead(
    layout: Layout, filler: bytes, parts: Sequence[Places], end: int, deadline: Deadline
) -> None:
    """Fill on behind positions that were filled, in each object as far as nothing is written.

    The runs grow, up to as many positions as one operation takes.

    Args:
        layout: of the log.
        filler: the id of who fills.
        parts: the positions that were filled, of each object of one stripe.
        end: what is filled lies below it.
        deadline: budget.
    """
    spacing = parts[0].spacing
    end = min(end, layout.stripe_of(layout.view, parts[0].start).end)
    firsts = [spacing.after(part[-1]) for part in parts]
    length = max(map(len, parts))
    while firsts:
        length = min(length * _GROWTH, ENTRIES_MAX)
        runs = [Places(spacing, p, end)[:length] for p in firsts if p < end]
        stops = await _fill(layout, filler, runs, deadline)
        firsts, rest = [], []
        for run, stop in zip(runs, stops, strict=True):
            if stop is None:
                firsts.append(spacing.after(run[-1]))
            elif stop > run.start:
                rest.append(Places(spacing, run.start, stop))
        await _fill(layout, filler, rest, deadline)


async def _fill(
    layout: Layout, filler: bytes, runs: Sequence[Places], deadline: Deadline
) -> list[int | None]:
    """Fill runs of positions of one stripe; an object fills all of its run, or nothing.

    Returns for each run the first position that is taken; None: it was filled.
    """
    now = layout.io.wall_clock_us()
    why = FillCode.READER_WAITED

    def calls(view: View) -> list[Call]:
        objects = layout.objects(view, layout.stripe_of(view, runs[0].start))
        return [
            Call(
                objects[run.number].name,
                "fill",
                messages.fill(view.epoch, now, filler, why, run.spacing.packed, run),
            )
            for run in runs
        ]

    if not runs:
        return []
    stops: list[int | None] = []
    _, replies = await layout.guarded(calls, deadline)
    for run, reply in zip(runs, replies, strict=True):
        if reply.code == -errno.ENOENT:
            stops.append(run.start)  # why, the reader finds out when it gets there
            continue
        reply.check("fill ahead of a reader", Code.READ_ONLY, Code.UNREADABLE, Code.LOST)
        stops.append(None if reply.code == Code.OK else reply.number)
    return stops
