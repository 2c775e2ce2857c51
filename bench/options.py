"""Options of several benchmarks, and the procedure that all benchmarks follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, TypeVar, get_args
from urllib.parse import urlsplit

import click

from bench.measure import ROUNDS, Candidate, Ratio, in_turns
from bench.results import Report, show
from bench.testbed import Run, Testbed, new_testbed
from zlog.cli.ceph import with_class
from zlog.cli.output import note
from zlog.cli.parameters import json_option, number_option, seconds_option, stripe_unit_option
from zlog.cli.session import Session, pass_session
from zlog.cli.units import size
from zlog.limits import COMPRESSIONS, STRIPE_UNIT_DEFAULT, WIDTH_DEFAULT, WIDTH_MAX
from zlog.store import ObjectClassUse

F = TypeVar("F", bound=Callable[..., Any])

Reports = Report | list[Report]
"""The result of a benchmark: one comparison, or several."""


def size_option(default: str) -> Callable[[F], F]:
    """Add ``--size``, the size of an entry in bytes."""
    return click.option(
        "--size",
        type=size,
        default=default,
        show_default=True,
        metavar="SIZE",
        help="Size of an entry.",
    )


width_option = number_option("--width", WIDTH_DEFAULT, 1, WIDTH_MAX, "Stripe objects of the log.")
_unit_option = stripe_unit_option(
    "Store N consecutive positions, a power of two, in one object.", STRIPE_UNIT_DEFAULT
)
tags_option = click.option(
    "--tags",
    type=click.IntRange(0, 1_000_000),
    default=0,
    metavar="N",
    help="Give each entry one of N tags, at random.",
)

compression_option = click.option(
    "--compression",
    type=click.Choice(COMPRESSIONS),
    default="none",
    show_default=True,
    help="Compression of the log, compared with an uncompressed log. With compression, entries are"
    " words from a vocabulary of 256, else random bytes.",
)

_seconds_option = seconds_option(
    "--seconds", 5.0, 0.001, None, "Measure the log and each limit for this long."
)

_class_option = click.option(
    "--class",
    "object_class",
    type=click.Choice(get_args(ObjectClassUse)),
    metavar="|".join(get_args(ObjectClassUse)),
    help="Whether clients use the object class, on Ceph.  [default: as the store's URL says]"
    " Clients that could use the class but do not are compared with clients that do.",
)


@dataclass(frozen=True)
class Bench:
    """The common settings of a benchmark from the command line.

    Attributes:
        session: the session with the store.
        seconds: the time to measure the load, and each limit.
        rounds: how often each has its turn.
    """

    session: Session
    seconds: float
    rounds: int = ROUNDS

    def testbed(self) -> AbstractContextManager[Testbed]:
        """Make a testbed in the store."""
        return new_testbed(self.session)

    def warm_up(self, run: Run) -> None:
        """Run a load for a moment, before it is measured."""
        run(self.seconds / self.rounds / 2)

    def with_class(
        self, testbed: Testbed, make: Callable[[Testbed], Run], compare: Ratio = Ratio.RATE
    ) -> Iterable[Candidate]:
        """Return the same load for clients that use the object class, if the load's own do not."""
        if testbed.with_class is not None:
            run = make(testbed.with_class)
            self.warm_up(run)
            how = "the same, by clients that use the object class"
            yield testbed.load("with the class", how, run, compare)

    def measure(
        self,
        load: Candidate,
        limits: Iterable[Candidate],
        title: str,
        entry_bytes: int,
        **workload: object,
    ) -> Report:
        """Measure a load and its limits."""
        candidates = [*limits]
        note(f"measuring {load.name} and its limits, {self.seconds:g} s each")
        measured = in_turns(load, candidates, self.seconds, entry_bytes, self.rounds)
        benchmark = click.get_current_context().info_name or ""
        workload = {**workload, "store": self.session.url, "seconds": self.seconds}
        return Report(benchmark, f"{title}, on {self.session.url}", workload, measured)


def bench_options(command: Callable[..., Reports]) -> Callable[..., None]:
    """Give a benchmark the options that all have; it gets them as a :class:`Bench`."""
    return _seconds_option(_shown(command))


def log_options(command: Callable[..., Reports]) -> Callable[..., None]:
    """Give a benchmark the common options, ``--width``, ``--stripe-unit`` and ``--class``."""
    return width_option(_unit_option(_seconds_option(_class_option(_shown(command)))))


def _shown(command: Callable[..., Reports]) -> Callable[..., None]:
    def with_bench(session: Session, /, *, as_json: bool, seconds: float, **others: Any) -> None:
        if use := others.pop("object_class", None):
            if urlsplit(session.url).scheme != "ceph":
                raise click.UsageError("--class needs a store on Ceph")
            session = session.of(with_class(session.url, use))
        found = command(Bench(session, seconds), **others)
        show([found] if isinstance(found, Report) else found, as_json=as_json)

    named = update_wrapper(with_bench, command)
    return json_option("Print a JSON object for each comparison.")(pass_session(named))
