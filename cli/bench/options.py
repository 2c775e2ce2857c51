"""Options that several benchmarks have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from zlog.cli.bench.place import SEQUENCER_HELP
from zlog.cli.parameters import json_option, size

F = TypeVar("F", bound=Callable[..., Any])


def count_option(name: str, default: int, most: int, text: str) -> Callable[[F], F]:
    """Make an option that takes a number from 1 on."""
    return click.option(
        name,
        type=click.IntRange(1, most),
        default=default,
        show_default=True,
        metavar="N",
        help=text,
    )


def size_option(default: str) -> Callable[[F], F]:
    """Make ``--size``, the bytes of one entry."""
    return click.option(
        "--size",
        type=size,
        default=default,
        show_default=True,
        metavar="SIZE",
        help="Bytes of one entry.",
    )


width_option = count_option("--width", 8, 1024, "Stripe objects of the log.")


def seconds_option(default: float) -> Callable[[F], F]:
    """Make ``--seconds``."""
    return click.option(
        "--seconds",
        type=click.FloatRange(min=0, min_open=True),
        default=default,
        show_default=True,
        metavar="S",
        help="How long to measure: so long the log, and so long each limit.",
    )


sequencer_option = click.option(
    "--sequencer", default="own", show_default=True, metavar="own|none|ADDRESS", help=SEQUENCER_HELP
)


def output_options(verb: F) -> F:
    """Give a benchmark ``--json`` and ``--plot``."""
    plot = click.option(
        "--plot",
        type=click.Path(dir_okay=False, writable=True, path_type=Path),
        metavar="FILE",
        help="Draw it too, as a PNG or whatever the name ends in; needs matplotlib.",
    )
    return json_option("Print one JSON object.")(plot(verb))
