"""Options that several benchmarks have."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, TypeVar

import click

from zlog.cli.parameters import json_option
from zlog.cli.session import Session, pass_session
from zlog.cli.units import size
from zlog.cli.verbs.bench.results import Report, show
from zlog.cli.verbs.bench.testbed import SEQUENCER_HELP, Testbed, new_testbed

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


report_option = json_option("Print one JSON object.")


@dataclass(frozen=True)
class Bench:
    """What every benchmark of a log is told.

    Attributes:
        url: of the store.
        width: stripe objects of the log.
        seconds: how long the log is to be measured, and each limit.
        as_json: whether the results are printed as JSON.
    """

    url: str
    width: int
    seconds: float
    as_json: bool
    _session: Session
    _sequencer: str

    def testbed(self) -> AbstractContextManager[Testbed]:
        """Make a testbed in the store, see :func:`new_testbed`."""
        return new_testbed(self._session, self._sequencer)

    def workload(self, **load: object) -> dict[str, object]:
        """Return what is measured, for a report: its own numbers, and those of every benchmark."""
        return {**load, "width": self.width, "store": self.url, "seconds": self.seconds}

    def show(self, report: Report) -> None:
        """Print what was measured."""
        show([report], as_json=self.as_json)


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
            **own: Any,
        ) -> None:
            verb(Bench(session.url, width, seconds, as_json, session, sequencer), **own)

        told = report_option(pass_session(update_wrapper(with_bench, verb)))
        return width_option(seconds_option(seconds)(sequencer_option(told)))

    return decorate
