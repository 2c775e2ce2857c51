"""Drawing what was measured. Needs matplotlib, which is no part of zlog."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from zlog._base.distribution import how_to_install
from zlog.cli.bench.measure import Measured, Ratio


def check_plot() -> None:
    """Make sure that drawing is possible, before anything is measured.

    Raises:
        click.UsageError: it isn't.
    """
    try:
        import matplotlib  # noqa: F401  # whether it is there
    except ImportError as error:
        raise click.UsageError(
            f"--plot needs matplotlib ({error}): {how_to_install('bench')}"
        ) from error


def draw(path: Path, groups: Sequence[tuple[str, Sequence[Measured]]]) -> None:
    """Draw groups of rates as bars, the load's above those of its limits.

    Args:
        path: of the picture; its ending says which kind.
        groups: a title and what was measured, the load first.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    heights = [0.9 + 0.35 * len(measured) for _, measured in groups]
    figure = Figure(figsize=(9, sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    rows = figure.subplots(len(groups), 1, squeeze=False, height_ratios=heights)
    for axes, (title, measured) in zip(rows[:, 0], groups, strict=True):
        latency = any(each.compare is Ratio.LATENCY for each in measured)
        values = [each.latencies["p50"] if latency else each.entries for each in measured]
        colours = ["tab:blue"] + ["tab:gray"] * (len(measured) - 1)
        bars = axes.barh([each.name for each in measured], values, color=colours)
        axes.bar_label(bars, [_label(each, latency) for each in measured], padding=3, fontsize=8)
        axes.invert_yaxis()
        axes.margins(x=0.25)
        axes.set_title(title, fontsize=9, loc="left")
        axes.set_xlabel("milliseconds (p50)" if latency else "entries per second", fontsize=8)
    figure.savefig(path)


def _label(each: Measured, latency: bool) -> str:
    value = f"{each.latencies['p50']:.3f}" if latency else f"{each.entries:,.0f}"
    return f"{value} (ratio {each.ratio:.2f})" if each.ratios else value
