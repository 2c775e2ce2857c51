"""The benchmark ``bench spark``."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import click

from zlog.cli.bench.measure import ROUNDS, Contender, Ratio, contest
from zlog.cli.bench.options import (
    count_option,
    output_options,
    seconds_option,
    sequencer_option,
    size_option,
    width_option,
)
from zlog.cli.bench.place import own_place
from zlog.cli.bench.queries import WARMING, SparkLoads
from zlog.cli.bench.results import Printer, Report
from zlog.cli.output import note
from zlog.cli.session import Session, pass_session
from zlog.cli.spans import count
from zlog.cli.spark.session import check_spark, master_options, spark_session
from zlog.cli.tables import human_bytes
from zlog.cli.verb import Verb


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
@width_option
@seconds_option(20.0)
@master_options
@sequencer_option
@output_options
@pass_session
def spark(
    session: Session,
    entries: int,
    size: int,
    per_batch: int,
    width: int,
    seconds: float,
    master: str | None,
    settings: dict[str, str],
    sequencer: str,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Measure how fast Spark reads a log, and writes one.

    A batch read of all entries, into nothing, beside Spark's read of the same rows from Parquet
    files on the local disk, and beside reads of the log without Spark: as columns, and as entries.
    Then the batches of a streaming query, beside those of a source of Spark's own that has as many
    tasks and rows, and does no work. Then a batch write of as many rows, out of Parquet files into
    a log, beside the same into files.
    """
    check_spark()
    if urlsplit(session.url).scheme == "mem":
        raise click.UsageError("mem:// belongs to one process, and Spark has several")
    if entries <= WARMING * per_batch:
        raise click.UsageError(f"--entries: these are not {WARMING + 1} batches of {per_batch}")
    printer = Printer(as_json, plot)
    workload = {
        "entries": entries,
        "size": size,
        "per_batch": per_batch,
        "width": width,
        "store": session.url,
        "seconds": seconds,
    }
    with ExitStack() as stack:
        place = stack.enter_context(own_place(session, sequencer))
        log = stack.enter_context(place.new_log(width))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zlog-bench-spark-")))
        # A stream is stopped amid a batch, of which Spark tells at length.
        quiet = {"spark.log.level": "OFF", **settings}
        started = spark_session("zlog bench spark", master, quiet, delta=False)
        loads = SparkLoads(stack.enter_context(started), place, log, folder, per_batch, width)
        note(f"writing {entries} entries in {place.url}, and as Parquet in {folder}")
        loads.prepare(entries, size)
        where = f"{human_bytes(size)}, width {width}, on {session.url}"
        reports = []
        for what, load, limits in _contests(loads):
            load.run(seconds / ROUNDS / 2)
            note(f"measuring: {what}")
            measured = contest(load, limits, seconds, size)
            reports.append(Report("spark", f"{what} {where}", workload, measured))
    printer.show(reports)


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
