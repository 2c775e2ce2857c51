"""The benchmark ``bench open``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import click

from zlog.cli.bench.measure import Contender, Ratio, Slice, contest
from zlog.cli.bench.options import Bench, bench_options, count_option, size_option
from zlog.cli.bench.place import Place
from zlog.cli.bench.results import Report
from zlog.cli.bench.sizes import SizedLog
from zlog.cli.output import note
from zlog.cli.units import human_bytes
from zlog.cli.verb import Verb


@click.command(
    "open",
    cls=Verb,
    examples="""
    zlog bench open
    zlog --store ceph://logs bench open --small 10000 --large 10000000
    """,
)
@count_option("--small", 1000, 1 << 30, "Entries of the small log.")
@count_option("--large", 100_000, 1 << 30, "Entries of the large log.")
@size_option("100")
@bench_options(2.0)
def open_(bench: Bench, small: int, large: int, size: int) -> None:
    """Measure whether a log gets slower as it grows.

    Measured in turns at a small log and at a large one: how long opening takes; how long a
    sequencer takes to take the log over (a new epoch, all stripe objects sealed, a new view); the
    rates of appending at the end and of reading a range. RATIO compares the large log with the
    small one, and with single calls of the object class from C++.
    """
    if large <= small:
        raise click.UsageError("--large is to be more than --small")
    workload = bench.workload(small=small, large=large, size=size)
    reports = []
    with ExitStack() as stack:
        place = stack.enter_context(bench.place())
        note(f"writing {large} entries in {place.url}")
        logs = [
            stack.enter_context(SizedLog(place, count, size, bench.width))
            for count in (large, small)
        ]
        title = f"a log of {large} entries of {human_bytes(size)} against one of {small}"
        for what, run, compare in _MEASURES:
            note(f"measuring: {what}")
            big, little = (
                Contender(f"{what}, {log.count}", run.__doc__ or "", _at(run, log), compare)
                for log in logs
            )
            limits = [little]
            if compare is Ratio.LATENCY:
                limits.append(_class_call(place, bench.width))
            measured = contest(big, limits, bench.seconds, size if compare is Ratio.RATE else 0)
            reports.append(Report("open", f"{what}: {title}, on {bench.url}", workload, measured))
    bench.printer.show(reports)


def _at(run: Callable[[SizedLog, float], Slice], log: SizedLog) -> Callable[[float], Slice]:
    return lambda seconds: run(log, seconds)


def _class_call(place: Place, width: int) -> Contender:
    measure = place.limits.measure
    return Contender(
        "class call",
        "a call of a class method that writes nothing, one after the other, from C++",
        lambda seconds: measure("class_calls", seconds=seconds, objects=width, in_flight=1),
        Ratio.LATENCY,
    )


_MEASURES = (
    ("open", SizedLog.open, Ratio.LATENCY),
    ("append", SizedLog.append, Ratio.RATE),
    ("read", SizedLog.read, Ratio.RATE),
    ("take over", SizedLog.take_over, Ratio.LATENCY),
)
"""In this order: a log that was taken over for nobody can't be appended to."""
