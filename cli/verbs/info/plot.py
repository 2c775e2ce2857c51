"""The picture of ``zlog info``: what the positions of a log hold, as the console draws it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

import zlog
from zlog import LogStat, PositionCell, PositionMap
from zlog.cli.look import Look
from zlog.cli.plot import MARGIN, TEXT_SIZE, WIDTH, Paper, Plot, shortened, width_of
from zlog.cli.units import human_bytes

STATES = ("written", "filled", "trimmed", "unwritten", "lost", "unreadable", "unknown")
"""From the bottom of a column to its top."""

_COLUMNS = 300
_APART_MAX = 100
"""Up to so many positions stand apart."""

_STRIP_WIDTH, _STRIP_HEIGHT = 7.6, 1.6
"""In inches. What is right of the strip is for the legend, and for labels of marks near its end."""
_SEEN = 0.03
"""Part of the height that what is rare has at least."""

_LABEL_SIZE = 8.0
_LABEL_WIDTH = 1.8
_ROW = 0.17
_TICK = 0.3
"""Of a row: what is left free beside the strip, for the marks that have no label."""
_PAD = 0.04
_STRIPE_ROWS, _CURSOR_ROWS = 3, 8


class Mark(NamedTuple):
    """A position with a label."""

    position: int
    label: str


def draw(plot: Plot, log: zlog.Log, stat: LogStat) -> None:
    """Draw a log.

    Raises:
        OSError: the picture can't be written.
        ZlogError: the log can't be looked at.
    """
    seen = log.position_map(cells=_COLUMNS)
    cursors = log.cursors()
    stripes = [Mark(each.start, f"epoch {each.id}, width {each.width}") for each in seen.stripes]
    below = [Mark(seen.tail, "tail")] if seen.tail else []
    below += [Mark(each.position, each.name) for each in cursors]
    if seen.trim_point:
        below.append(Mark(seen.trim_point, "trim point"))
    above_rows, below_rows = (
        _rows(marks, seen.tail, most)
        for marks, most in ((stripes, _STRIPE_ROWS), (below, _CURSOR_ROWS))
    )
    numbers = (
        f"tail {seen.tail:,}, trim point {seen.trim_point:,}, entries {stat.entries:,},"
        f" bytes {stat.bytes:,} ({human_bytes(stat.bytes)})"
    )
    notes = [*_looked(seen), *_unnamed("stripes", above_rows), *_unnamed("marks", below_rows)]
    heights = [_ROW * _depth(above_rows), _STRIP_HEIGHT, _ROW * _depth(below_rows)]
    body = sum(heights) + 0.4  # for numbers
    with plot.paper(log.name, [log.store.url, numbers], ["; ".join(notes)], body) as paper:
        top = 0.0
        places = []
        for height in heights:
            places.append(paper.axes(0, top, _STRIP_WIDTH, height))
            places[-1].set_xlim(0, max(1, seen.tail))
            top += height
        _draw_marks(places[0], paper, stripes, above_rows, upwards=True)
        _draw_strip(places[1], paper, seen, cursors=len(cursors))
        _draw_marks(places[2], paper, below, below_rows, upwards=False)
        places[2].xaxis.set_major_locator(MaxNLocator(8, integer=True))
        places[2].xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        if not seen.tail:
            places[2].set_xticks([])


def _looked(seen: PositionMap) -> list[str]:
    if not seen.cells:
        return []
    if _exact(seen):
        return ["every position was looked at"]
    most = max(cell.looked for cell in seen.cells)
    return [f"samples of {most} positions for each column"]


def _exact(seen: PositionMap) -> bool:
    return all(cell.looked == cell.end - cell.start for cell in seen.cells)


def _unnamed(what: str, rows: Sequence[int | None]) -> list[str]:
    left = rows.count(None)
    return [f"{left:,} of {len(rows):,} {what} have no label here"] if left else []


def _rows(marks: Sequence[Mark], tail: int, most: int) -> list[int | None]:
    """Return in which row each mark has its label; None for those without room.

    A label begins at its mark, whose line comes down to it through the rows before. So marks are
    taken from the last one back: each takes the first row in which it ends before what is there.
    """
    free = [WIDTH - 2 * MARGIN] * most
    rows: list[int | None] = [None] * len(marks)
    for index in sorted(range(len(marks)), key=lambda index: -marks[index].position):
        begin = _x(marks[index].position, tail)
        end = begin + width_of(_label(marks[index]), _LABEL_SIZE) + 3 * _PAD
        row = next((row for row in range(most) if end <= free[row]), None)
        if row is not None:
            free[: row + 1] = [begin] * (row + 1)
        rows[index] = row
    return rows


def _x(position: int, tail: int) -> float:
    return _STRIP_WIDTH * min(position, tail) / max(1, tail)


def _label(mark: Mark) -> str:
    return shortened(mark.label, _LABEL_SIZE, _LABEL_WIDTH)


def _depth(rows: Sequence[int | None]) -> float:
    """Return how much room marks take, in rows."""
    return _TICK + 1 + max((row for row in rows if row is not None), default=0)


def _draw_marks(
    axes: Axes, paper: Paper, marks: Sequence[Mark], rows: Sequence[int | None], *, upwards: bool
) -> None:
    depth = _depth(rows)
    axes.set_ylim(*((0, depth) if upwards else (depth, 0)))
    axes.set_facecolor("none")
    axes.spines[:].set_visible(False)
    axes.set_xticks([])
    axes.set_yticks([])
    ends = [_TICK if row is None else _TICK + row + 0.9 for row in rows]
    places = [min(mark.position, axes.get_xlim()[1]) for mark in marks]
    axes.vlines(places, 0, ends, color=paper.look.text, linewidth=0.6, clip_on=False)
    for mark, place, row in zip(marks, places, rows, strict=True):
        if row is not None:
            axes.annotate(
                _label(mark),
                (place, _TICK + row + 0.5),
                xytext=(72 * _PAD, 0),
                textcoords="offset points",
                va="center_baseline",
                size=_LABEL_SIZE,
                color=paper.look.faint,
                annotation_clip=False,
            )


def _draw_strip(axes: Axes, paper: Paper, seen: PositionMap, cursors: int) -> None:
    look = paper.look
    axes.set_ylim(0, 1)
    axes.spines[:].set_visible(True)
    axes.set_xticks([])
    axes.set_yticks([])
    if not seen.cells:
        axes.text(0.5, 0.5, "no positions yet", ha="center", size=TEXT_SIZE, color=look.faint)
        return
    legend: list[Patch | Line2D] = [*_draw_columns(axes, look, seen)]
    if seen.end - seen.start <= _APART_MAX:
        axes.vlines(range(1, seen.end), 0, 1, color=look.surface, linewidth=1.0)
    if seen.trim_point:
        axes.axvline(seen.trim_point, color=look.text, linewidth=1.0, linestyle=(0, (4, 2)))
    if cursors:
        label = "1 cursor" if cursors == 1 else f"{cursors:,} cursors"
        legend.append(Line2D([], [], color=look.text, marker="|", linestyle="", label=label))
    axes.legend(
        handles=legend,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.02),
        handlelength=1.2,
        handleheight=1.0,
        labelspacing=0.35,
    )


def _draw_columns(axes: Axes, look: Look, seen: PositionMap) -> list[Patch]:
    """Draw each state's share of each column; returns a legend. Equal neighbours are one column."""
    columns = [(shares, [*run]) for shares, run in groupby(seen.cells, _shares)]
    edges = [run[0].start for _, run in columns] + [seen.end]
    legend = []
    below = [0.0] * len(columns)
    for state in STATES:
        part = [shares[state] for shares, _ in columns]
        if not any(part):
            continue
        least = 0 if state in ("written", "trimmed") else _SEEN
        tall = [max(share, least) if share else math.nan for share in part]
        feet = [min(low, 1 - high) for low, high in zip(below, tall, strict=True)]
        tops = [low + high for low, high in zip(feet, tall, strict=True)]
        colour = look.states[state]
        axes.stairs(tops, edges, baseline=feet, fill=True, color=colour, gid=state, linewidth=0)
        below = [low + share for low, share in zip(below, part, strict=True)]
        label = f"{state} {_count(seen, state)}"
        legend.append(Patch(facecolor=colour, edgecolor=look.line, label=label))
    return legend


def _shares(cell: PositionCell) -> dict[str, float]:
    return {state: getattr(cell, state) / cell.looked for state in STATES}


def _count(seen: PositionMap, state: str) -> str:
    """Return how many positions that is, or about which part where not all were looked at."""
    count = sum(_shares(cell)[state] * (cell.end - cell.start) for cell in seen.cells)
    if _exact(seen):
        return f"{count:,.0f}"
    return f"≈ {100 * count / (seen.end - seen.start):.3g} %"
