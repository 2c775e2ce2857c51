"""Pictures of what benchmarks measured: what their tables say."""

from __future__ import annotations

import shlex
import statistics
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

import zlog
from zlog.cli.plot import MARGIN, WIDTH, Paper, Plot
from zlog.cli.verbs.bench.measure import Figures, Ratio
from zlog.cli.verbs.bench.results import Report, ratio_of

_QUANTILES = {"p50": "o", "p99": "s", "p99.9": "^"}
_WHO = ("client", "osd", "sequencer")
_ROW = 0.42
_NAMES = 1.25
_AXIS = 0.6
_TOP = 0.25
"""For a legend above a chart."""
_GAP = 0.3


def draw(plot: Plot, report: Report) -> None:
    """Draw a load beside its limits: rates, times of calls and CPU time.

    Raises:
        OSError: the picture can't be written.
    """
    measured = report.measured
    notes = [_origin(), *(f"{each['name']}: {each['how']}" for each in measured)]
    height = _ROW * len(measured)
    with plot.paper(f"bench {report.benchmark}", [report.title], notes, _height(height)) as paper:
        room = WIDTH - 2 * MARGIN - _NAMES - 2 * _GAP
        left = _NAMES
        for draw_part, part in ((_rates, 0.4), (_latencies, 0.36), (_cpu, 0.24)):
            axes = _chart(paper, left, part * room, [each["name"] for each in measured])
            draw_part(axes, paper, measured)
            left += part * room + _GAP


def draw_failover(
    plot: Plot, title: str, stalls: Mapping[str, Sequence[tuple[float, float]]]
) -> None:
    """Draw how long appends stalled in each round, after which faults.

    Args:
        plot: where.
        title: what was measured, in one line.
        stalls: for each fault its rounds: seconds of the first writer, and of the last one.

    Raises:
        OSError: the picture can't be written.
    """
    rows = {
        f"{fault}: {which}": [each[index] for each in rounds]
        for fault, rounds in stalls.items()
        for index, which in enumerate(("first", "last"))
    }
    with plot.paper("bench failover", [title], [_origin()], _height(_ROW * len(rows))) as paper:
        axes = _chart(paper, _NAMES, WIDTH - 2 * MARGIN - _NAMES, [*rows])
        for row, seconds in enumerate(rows.values()):
            axes.plot(seconds, [row] * len(seconds), "o", color=paper.look.accent, alpha=0.5)
            median = statistics.median(seconds)
            axes.plot([median], [row], "|", color=paper.look.text, markersize=10)
            words = f"median {median:.3f}, max {max(seconds):.3f}"
            _above(axes, paper, 0, row, words)
        axes.set_xlim(left=0)
        axes.set_xlabel("seconds from the fault to an append of the first writer, and of the last")


def _origin() -> str:
    now = datetime.now().astimezone()
    command = shlex.join(["zlog", *sys.argv[1:]])
    return f"{now:%Y-%m-%d %H:%M %z}, zlog {zlog.__version__}: {command}"


def _height(rows: float) -> float:
    return _TOP + rows + _AXIS


def _chart(paper: Paper, left: float, width: float, names: Sequence[str]) -> Axes:
    """Return a chart with a row for each name, from the top; names are left of the first chart."""
    axes = paper.axes(left, _TOP, width, _ROW * len(names))
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), names if left == _NAMES else [""] * len(names))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    return axes


def _rates(axes: Axes, paper: Paper, measured: Sequence[Figures]) -> None:
    colours = [paper.look.accent] + [paper.look.series[0]] * (len(measured) - 1)
    rates = [each["entries_per_second"] for each in measured]
    bars = axes.barh(range(len(rates)), rates, height=0.55, color=colours)
    for row, (bar, each) in enumerate(zip(bars, measured, strict=True)):
        bar.set_gid(f"rate-{row}")
        ratio = ratio_of(each) if each.get("compare") == Ratio.RATE.value else ""
        words = f"{each['entries_per_second']:,.0f}{ratio and f', ratio {ratio}'}"
        place = (each["entries_per_second"], bar.get_y() + bar.get_height() / 2)
        axes.annotate(words, place, (3, 0), textcoords="offset points", va="center_baseline")
    axes.set_xlim(0, 1.75 * max(rates))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(_short))
    axes.set_xlabel("entries per second")


def _latencies(axes: Axes, paper: Paper, measured: Sequence[Figures]) -> None:
    times = {name: [each["latency_ms"][name] for each in measured] for name in _QUANTILES}
    every = [time for each in times.values() for time in each if time]
    low, high = (min(every) / 1.5, max(every) * 1.5) if every else (0.1, 1.0)
    shown = {name: [max(time, low) for time in each] for name, each in times.items()}
    rows = range(len(measured))
    axes.hlines(rows, shown["p50"], shown["p99.9"], color=paper.look.faint, linewidth=1)
    colours = (paper.look.accent, *paper.look.series[1:])
    for (name, marker), colour in zip(_QUANTILES.items(), colours, strict=False):
        axes.plot(shown[name], rows, marker, color=colour, markersize=5, label=name, clip_on=False)
    for row, each in enumerate(measured):
        words = " / ".join(f"{each['latency_ms'][name]:.3f}" for name in _QUANTILES)
        ratio = ratio_of(each) if each.get("compare") == Ratio.LATENCY.value else ""
        _above(axes, paper, low, row, f"{words}{ratio and f', {ratio}'}")
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.xaxis.set_major_locator(LogLocator(numticks=5))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("latency, ms")
    _legend(axes)


def _cpu(axes: Axes, paper: Paper, measured: Sequence[Figures]) -> None:
    colours = (paper.look.accent, *paper.look.series[1:])
    ends = [0.0] * len(measured)
    for who, colour in zip(_WHO, colours, strict=False):
        used = [each["cpu_us_per_entry"].get(who, 0.0) for each in measured]
        if any(who in each["cpu_us_per_entry"] for each in measured):
            axes.barh(range(len(used)), used, 0.55, ends, color=colour, label=who)
            ends = [end + more for end, more in zip(ends, used, strict=True)]
    for row, end in enumerate(ends):
        words = f"{end:,.2f}" if end < 1000 else f"{end:,.0f}"
        axes.annotate(words, (end, row), (3, 0), textcoords="offset points", va="center_baseline")
    axes.set_xlim(0, 1.45 * max(*ends, 0.001))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(_short))
    axes.set_xlabel("CPU per entry, µs")
    _legend(axes)


def _above(axes: Axes, paper: Paper, left: float, row: int, words: str) -> None:
    """Write in small letters above what is drawn in a row."""
    place = (left, row - 0.18)
    colour = paper.look.faint
    axes.annotate(
        words, place, (2, 0), textcoords="offset points", va="bottom", size=6.5, color=colour
    )


def _legend(axes: Axes) -> None:
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.0),
        ncols=3,
        handlelength=1.0,
        columnspacing=1.0,
        handletextpad=0.4,
        borderaxespad=0.4,
    )


def _short(value: float, _place: int | None = None) -> str:
    for power, unit in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if value >= power:
            return f"{value / power:g}{unit}"
    return f"{value:g}"
