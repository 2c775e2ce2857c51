"""The benchmark ``bench spark``."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import click

from zlog.cli.bench.measure import ROUNDS, Contender, Ratio, contest
from zlog.cli.bench.options import Bench, bench_options, count_option, size_option
from zlog.cli.bench.queries import WARMING, SparkLoads
from zlog.cli.bench.results import Report
from zlog.cli.output import note
from zlog.cli.units import count, human_bytes
from zlog.cli.verb import Verb
from zlog.cli.verbs.spark.session import check_spark, master_options, spark_session


@click.command(
    cls=Verb,
    examples="""
    zlog bench spark
    zlog --store ceph://logs bench spark --entries 5M --size 100
    """,
)
@click.option(
    "--entries",
    type=count,
    default="1M",
    show_default=True,
    metavar="N",
    help="Entries that are written first, to be read.",
)
@size_option("100")
@count_option("--per-batch", 8000, 1 << 20, "Entries of a streaming query's batch, at most.")
@master_options
@bench_options(20.0)
def spark(
    bench: Bench,
    entries: int,
    size: int,
    per_batch: int,
    master: str | None,
    settings: dict[str, str],
) -> None:
    """Measure how fast Spark reads a log, and writes one.

    A batch read of all entries, into nothing, beside Spark's read of the same rows from Parquet
    files on the local disk, and beside reads of the log without Spark: as columns, and as entries.
    Then the batches of a streaming query, beside those of a source of Spark's own that has as many
    tasks and rows, and does no work. Then a batch write of as many rows, out of Parquet files into
    a log, beside the same into files.
    """
    check_spark()
    if urlsplit(bench.url).scheme == "mem":
        raise click.UsageError("mem:// belongs to one process, and Spark has several")
    if entries <= WARMING * per_batch:
        raise click.UsageError(f"--entries: these are not {WARMING + 1} batches of {per_batch}")
    workload = bench.workload(entries=entries, size=size, per_batch=per_batch)
    with ExitStack() as stack:
        place = stack.enter_context(bench.place())
        log = stack.enter_context(place.new_log(bench.width))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zlog-bench-spark-")))
        # A stream is stopped amid a batch, of which Spark tells at length.
        quiet = {"spark.log.level": "OFF", **settings}
        started = spark_session("zlog bench spark", master, quiet, delta=False)
        loads = SparkLoads(stack.enter_context(started), place, log, folder, per_batch, bench.width)
        note(f"writing {entries} entries in {place.url}, and as Parquet in {folder}")
        loads.prepare(entries, size)
        where = f"{human_bytes(size)}, width {bench.width}, on {bench.url}"
        reports = []
        for what, load, limits in _contests(loads):
            load.run(bench.seconds / ROUNDS / 2)
            note(f"measuring: {what}")
            measured = contest(load, limits, bench.seconds, size)
            reports.append(Report("spark", f"{what} {where}", workload, measured))
    bench.printer.show(reports)


def _contests(loads: SparkLoads) -> Iterator[tuple[str, Contender, list[Contender]]]:
    parallel = f"{loads.cores} tasks at a time"
    yield (
        f"Spark reads {loads.entries} entries of",
        Contender("Spark, zlog", f'format("zlog"), all columns, {parallel}', loads.batch),
        [
            Contender("Spark, Parquet", f"the same rows from files, {parallel}", loads.parquet),
            Contender("read_columns", "the library, one process, without Spark", loads.columns),
            Contender("read_range", "the library, an object for each entry", loads.range),
        ],
    )
    how = "a call is a batch, from its planning to its commit; nothing is done with the rows"
    yield (
        f"batches of {loads.per_batch} entries of",
        Contender("zlog's stream", how, loads.stream),
        [
            Contender(
                "Spark's source",
                "rate-micro-batch, with as many rows and tasks, made up in the JVM",
                loads.own_stream,
                Ratio.LATENCY,
            )
        ],
    )
    yield (
        f"Spark writes {loads.entries} rows of",
        Contender("Spark, zlog", f'format("zlog"), rows of files, {parallel}', loads.write),
        [Contender("Spark, Parquet", f"files, of the same rows, {parallel}", loads.write_parquet)],
    )
