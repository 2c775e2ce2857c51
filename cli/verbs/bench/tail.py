"""The benchmark ``bench tail``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import click

from zlog.cli.output import note
from zlog.cli.units import human_bytes
from zlog.cli.verb import Verb
from zlog.cli.verbs.bench.followers import Followed
from zlog.cli.verbs.bench.measure import ROUNDS, Contender, Ratio, contest
from zlog.cli.verbs.bench.options import Bench, bench_options, size_option
from zlog.cli.verbs.bench.results import Report
from zlog.cli.verbs.bench.testbed import Testbed

_ENTRIES = 10_000
"""Entries in what the raw reads read from."""


@click.command(
    cls=Verb,
    examples="""
    zlog bench tail
    zlog --store ceph://logs bench tail --rate 1000 --size 1K
    """,
)
@size_option("100")
@click.option(
    "--rate",
    type=click.FloatRange(min=0.1),
    default=200.0,
    show_default=True,
    metavar="N",
    help="Entries that are appended per second, one after the other.",
)
@bench_options(5.0)
def tail(bench: Bench, size: int, rate: float) -> None:
    """Measure how soon a follower has what a writer appended.

    The time runs from the append's acknowledgement in the writer's process to the entry in the
    reader's hands in another one; it is 0 where the reader was faster. Beside it stand single raw
    reads of an entry from the same store, measured in turns with it. RATIO says how many of those
    it takes, at p50.
    """
    with ExitStack() as stack:
        testbed = stack.enter_context(bench.testbed())
        if testbed.kind == "mem":
            raise click.UsageError("mem:// is the memory of one process: no other can follow")
        log = stack.enter_context(testbed.new_log(bench.width))
        followed = stack.enter_context(Followed(testbed, log, size, rate))
        followed.run(bench.seconds / ROUNDS / 2)
        note(f"following and measuring the limits, {bench.seconds:g} s each")
        contender = Contender("follow", followed.how, followed.run)
        measured = contest(contender, [*_limits(testbed, size, bench.width)], bench.seconds, size)
        title = (
            f"{human_bytes(size)} entries, {rate:g} appended per second, width {bench.width}, on"
            f" {bench.url}"
        )
        workload = bench.workload(size=size, rate=rate)
    bench.show(Report("tail", title, workload, measured))


def _limits(testbed: Testbed, size: int, width: int) -> Iterator[Contender]:
    limit = testbed.limits.contender
    if testbed.kind == "ceph":
        yield limit(
            "plain librados",
            f"reads of {size} bytes, one after the other, from C++",
            "rados_reads",
            compare=Ratio.LATENCY,
            order="random",
            objects=width,
            size=size,
            bytes=size * _ENTRIES,
            in_flight=1,
        )
    else:
        yield limit(
            "LMDB",
            "LMDB alone in C++: one value, copied out, in a transaction of its own",
            "lmdb_gets",
            compare=Ratio.LATENCY,
            size=size,
            entries=_ENTRIES,
        )
    yield limit(
        "class reads",
        "class reads of one entry, one after the other, from C++",
        "class_reads",
        compare=Ratio.LATENCY,
        objects=width,
        size=size,
        batch=1,
        entries=_ENTRIES // 10,
        window=1,
        in_flight=1,
    )
