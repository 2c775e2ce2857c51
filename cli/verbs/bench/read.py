"""The benchmark ``bench read``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import click

from zlog.cli.output import note
from zlog.cli.units import human_bytes
from zlog.cli.verb import Verb
from zlog.cli.verbs.bench.measure import ROUNDS, Contender, contest
from zlog.cli.verbs.bench.options import Bench, bench_options, count_option, size_option
from zlog.cli.verbs.bench.readers import RandomReader, RangeReader, Reader, ReadLoad, prepare
from zlog.cli.verbs.bench.results import Report
from zlog.cli.verbs.bench.testbed import Testbed

_RAW_READS_PER_OBJECT = 2
"""Plain reads in flight per object, beside a range read: one that arrives, and one on its way."""


@click.command(
    cls=Verb,
    examples="""
    zlog bench read                                # a range, from its beginning to its end
    zlog bench read --order random --depth 64
    zlog --store ceph://logs bench read --size 16K --entries 16384 --json
    """,
)
@click.option(
    "--order",
    type=click.Choice(["range", "random"]),
    default="range",
    show_default=True,
    help="Read a range, or one position here and one there.",
)
@size_option("100")
@count_option("--entries", 262144, 1 << 27, "Entries that are written first, to be read.")
@count_option("--batch", 1024, 16384, "Entries that one append wrote.")
@count_option("--depth", 1, 4096, "Random reads in flight.")
@bench_options(5.0)
def read(bench: Bench, order: str, size: int, entries: int, batch: int, depth: int) -> None:
    """Measure how fast entries are read.

    Beside it stand the raw limits of the same store, measured in turns with it: plain librados
    reads of the same bytes from as many objects, or LMDB alone; and the same operations of the
    object class sent by a C++ program. RATIO is the part of each limit that was reached.
    """
    if order == "range" and depth > 1:
        raise click.UsageError("--depth is for --order random: a range has its own read-ahead")
    load = ReadLoad(size, entries, batch, depth, bench.width)
    with ExitStack() as stack:
        testbed = stack.enter_context(bench.testbed())
        log = stack.enter_context(testbed.new_log(bench.width))
        note(f"writing {entries} entries in {testbed.url}")
        prepare(testbed, log, load)
        kind = RangeReader if order == "range" else RandomReader
        reader: Reader = stack.enter_context(closing(kind(testbed, log, load)))
        reader.run(bench.seconds / ROUNDS / 2)
        note(f"reading and measuring the limits, {bench.seconds:g} s each")
        contender = Contender(f"{order} read", reader.how, reader.run)
        if order == "range":
            limits = [*_range_limits(testbed, load, reader.per_operation)]
        else:
            limits = [*_random_limits(testbed, load)]
        measured = contest(contender, limits, bench.seconds, size)
        title = (
            f"{order} read of {human_bytes(size)}, entries {entries}, batch {batch},"
            f" depth {depth}, width {bench.width}, on {bench.url}"
        )
        workload = bench.workload(order=order, size=size, entries=entries, batch=batch, depth=depth)
    bench.show(Report("read", title, workload, measured))


def _range_limits(testbed: Testbed, load: ReadLoad, per_operation: float) -> Iterator[Contender]:
    window = max(load.width, round(per_operation * load.width))
    if testbed.kind == "ceph":
        size = max(1, round(per_operation * load.size))
        in_flight = _RAW_READS_PER_OBJECT * load.width
        yield testbed.limits.contender(
            "plain librados",
            f"reads of {size} bytes from {load.width} objects, {in_flight} in flight, counted as"
            f" {per_operation:.0f} entries each",
            "rados_reads",
            per_operation,
            order="range",
            objects=load.width,
            size=size,
            bytes=load.size * load.entries,
            in_flight=in_flight,
        )
    if testbed.kind == "file":
        yield testbed.limits.contender(
            "LMDB",
            f"LMDB alone in C++: {window} values after each other, copied out",
            "lmdb_scans",
            min(window, load.entries),
            size=load.size,
            entries=load.entries,
            window=window,
        )
    yield _class_reads(testbed, load, window, _RAW_READS_PER_OBJECT)


def _random_limits(testbed: Testbed, load: ReadLoad) -> Iterator[Contender]:
    if testbed.kind == "ceph":
        yield testbed.limits.contender(
            "plain librados",
            f"reads of {load.size} bytes from {load.width} objects, {load.depth} in flight",
            "rados_reads",
            1,
            order="random",
            objects=load.width,
            size=load.size,
            bytes=load.size * load.entries,
            in_flight=load.depth,
        )
    if testbed.kind == "file":
        yield testbed.limits.contender(
            "LMDB",
            "LMDB alone in C++: one value anywhere, copied out, in a transaction of its own",
            "lmdb_gets",
            1,
            size=load.size,
            entries=load.entries,
        )
    yield _class_reads(testbed, load, 1, load.depth)


def _class_reads(testbed: Testbed, load: ReadLoad, window: int, in_flight: int) -> Contender:
    window = min(window, load.entries)
    return testbed.limits.contender(
        "class reads",
        f"a C++ program that sends the same operations, for batches of {window},"
        f" {in_flight} in flight, and checks every entry",
        "class_reads",
        window,
        objects=load.width,
        size=load.size,
        batch=load.batch,
        entries=load.entries,
        window=window,
        in_flight=in_flight,
    )
