"""Options that several benchmarks have."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import update_wrapper
from pathlib import Path
from typing import Any, TypeVar

import click

from zlog.cli.bench.place import SEQUENCER_HELP, Place, own_place
from zlog.cli.bench.results import Printer
from zlog.cli.parameters import json_option
from zlog.cli.session import Session, pass_session
from zlog.cli.units import size

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


@dataclass(frozen=True)
class Bench:
    """What every benchmark of a log is told.

    Attributes:
        url: of the store.
        width: stripe objects of the log.
        seconds: how long the log is to be measured, and each limit.
        printer: where the results go.
    """

    url: str
    width: int
    seconds: float
    printer: Printer
    _session: Session
    _sequencer: str

    def place(self) -> AbstractContextManager[Place]:
        """Make a place in the store, see :func:`own_place`."""
        return own_place(self._session, self._sequencer)

    def workload(self, **load: object) -> dict[str, object]:
        """Return what is measured, for a report: its own numbers, and those of every benchmark."""
        return {**load, "width": self.width, "store": self.url, "seconds": self.seconds}


def bench_options(seconds: float) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a benchmark of a log the options of all; it gets them as a :class:`Bench`.

    Args:
        seconds: how long it measures if nothing else is said.
    """

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        def with_bench(
            session: Session,
            /,
            *,
            width: int,
            seconds: float,
            sequencer: str,
            as_json: bool,
            plot: Path | None,
            **own: Any,
        ) -> None:
            printer = Printer(as_json, plot)
            verb(Bench(session.url, width, seconds, printer, session, sequencer), **own)

        told = output_options(pass_session(update_wrapper(with_bench, verb)))
        return width_option(seconds_option(seconds)(sequencer_option(told)))

    return decorate
