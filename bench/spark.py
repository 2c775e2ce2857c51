"""The benchmark ``bench spark``."""

from __future__ import annotations

import os
import random
import tempfile
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

import zlog
from bench.measure import ROUNDS, Candidate, Ratio, Slice, repeat
from bench.options import Bench, bench_options, size_option, width_option
from bench.results import Report
from bench.testbed import Testbed
from zlog.cli.command import Command
from zlog.cli.commands.spark.session import spark_session
from zlog.cli.parameters import number_option

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_APPEND = 4096
"""The number of entries per append."""

_WITHOUT_DATA = "position", "timestamp"
"""The columns that are read without the others."""

_WARMING = 2
"""Batches at the start of a query that are not counted: its code is still being compiled."""

_BATCHES_MIN = 3

_LOGS_OF_A_BATCH = 20
"""The number of logs to which a batch is appended, if a stream reads many."""

_BATCHES_OF_A_QUERY = 20
"""Batches of a query that are counted. The query ends by itself, because Spark's workers report
broken pipes on stderr if a query is stopped during a batch."""


class Batch(NamedTuple):
    """A batch of a streaming query: its number, its rows, and the seconds from plan to commit."""

    number: int
    rows: int
    seconds: float


@dataclass
class SparkLoads:
    """Reads and writes, by Spark and without it; each public method that takes seconds is a load.

    Attributes:
        spark: the session.
        testbed: where the logs are.
        log: the name of the log that is read.
        folder: for Parquet and for checkpoints.
        names: the names of other logs, which are empty at first.
        entries, size, width, per_batch: the options of the command line.
    """

    spark: SparkSession
    testbed: Testbed
    log: str
    names: Sequence[str]
    folder: Path
    entries: int
    size: int
    width: int
    per_batch: int
    _queries: int = 0
    _appended: Counter[str] = field(default_factory=Counter, init=False)  # by the first log

    def __post_init__(self) -> None:
        self._parquet = str(self.folder / "parquet")
        self._options = {"store": self.testbed.url, "log": self.log}

    def prepare(self) -> None:
        """Write the log, and the same rows as Parquet. All entries differ."""
        with self._open() as log:
            for left in range(self.entries, 0, -_APPEND):
                log.append_many([os.urandom(self.size) for _ in range(min(left, _APPEND))])
        self._table().write.parquet(self._parquet)

    def _open(self) -> zlog.Log:
        return zlog.Log.open(self.testbed.store, self.log, timeout=self.testbed.timeout)

    def _table(self, **options: str) -> DataFrame:
        return self.spark.read.format("zlog").options(**self._options, **options).load()

    def batch(self, seconds: float) -> Slice:
        """Have Spark read the log."""
        return self._repeat(lambda: _into_nothing(self._table()), seconds)

    def parquet(self, seconds: float) -> Slice:
        """Have Spark read the files."""
        return self._repeat(lambda: _into_nothing(self.spark.read.parquet(self._parquet)), seconds)

    def batch_without_data(self, seconds: float) -> Slice:
        """Have Spark read the log without the entries' data."""
        columns = ",".join(_WITHOUT_DATA)
        return self._repeat(lambda: _into_nothing(self._table(columns=columns)), seconds)

    def parquet_without_data(self, seconds: float) -> Slice:
        """Have Spark read the same columns of the files."""

        def read() -> None:
            _into_nothing(self.spark.read.parquet(self._parquet).select(*_WITHOUT_DATA))

        return self._repeat(read, seconds)

    def columns(self, seconds: float) -> Slice:
        """Read the log as columns."""
        with self._open() as log:
            return self._repeat(lambda: self._check_columns(log), seconds)

    def range(self, seconds: float) -> Slice:
        """Read the log as entries."""
        with self._open() as log:
            return self._repeat(lambda: self._check_range(log), seconds)

    def _check_columns(self, log: zlog.Log) -> None:
        rows = sum(len(columns) for columns in log.read_columns(0, self.entries))
        if rows != self.entries:
            raise zlog.CorruptEntry(f"the log has {rows} entries, not {self.entries}")

    def _check_range(self, log: zlog.Log) -> None:
        last = deque(log.read_range(0, self.entries), 1).pop()
        if not isinstance(last, zlog.Entry) or last.end != self.entries:
            raise zlog.CorruptEntry(f"the log ends with {last}")

    def stream(self, seconds: float) -> Slice:
        """Run streaming queries over the end of the log."""
        start = max(0, self.entries - (_WARMING + _BATCHES_OF_A_QUERY) * self.per_batch)
        reader = self.spark.readStream.format("zlog").options(**self._options)
        reader = reader.option("startingPosition", start)
        table = reader.option("maxEntriesPerTrigger", self.per_batch).load()
        batches: list[Batch] = []
        began = time.monotonic()
        while True:
            query = self._start(table, availableNow=True)
            query.awaitTermination()
            batches += _batches(query)[_WARMING:]
            if time.monotonic() >= began + seconds:
                return _slice(batches)

    def own_stream(self, seconds: float) -> Slice:
        """Run a streaming query over rows that Spark generates."""
        reader = self.spark.readStream.format("rate-micro-batch")
        reader = reader.option("rowsPerBatch", self.per_batch)
        table = reader.option("numPartitions", self.width).load()
        query = self._start(table, processingTime="0 seconds")
        told: dict[int, Batch] = {}
        began = time.monotonic()
        try:
            while len(told) < _WARMING + _BATCHES_MIN or time.monotonic() < began + seconds:
                if query.awaitTermination(1):  # this raises the query's error
                    break
                told |= {each.number: each for each in _batches(query)}
        finally:
            query.stop()
        return _slice([told[number] for number in sorted(told)][_WARMING:])

    def one(self, seconds: float) -> Slice:
        """Run a streaming query over a log to which a batch is appended at a time."""
        return self._follow(self.names[:1], seconds)

    def many(self, seconds: float) -> Slice:
        """Do the same with many logs, where each batch goes to some of them."""
        return self._follow(self.names[1:], seconds)

    def _follow(self, names: Sequence[str], seconds: float) -> Slice:
        options = {"store": self.testbed.url, "logs": ",".join(names)}
        table = self.spark.readStream.format("zlog").options(**options).load()
        query = self._start(table, processingTime="0 seconds")
        some = min(len(names), _LOGS_OF_A_BATCH)
        each = self.per_batch // some
        told: dict[int, Batch] = {}
        began = time.monotonic()
        try:
            while len(told) < _WARMING + _BATCHES_MIN or time.monotonic() < began + seconds:
                for name in random.sample(names, some):
                    with zlog.Log.open(self.testbed.store, name) as log:
                        log.append_many([os.urandom(self.size)] * each)
                self._appended[names[0]] += each * some
                while sum(batch.rows for batch in told.values()) < self._appended[names[0]]:
                    query.awaitTermination(1)
                    told |= {batch.number: batch for batch in _batches(query)}
        finally:
            query.stop()
        return _slice([told[number] for number in sorted(told)][_WARMING:])

    def _start(self, table: DataFrame, **trigger: Any) -> StreamingQuery:
        self._queries += 1
        checkpoint = self.folder / f"checkpoint-{self._queries}"
        writer = table.writeStream.format("noop").trigger(**trigger)
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def write(self, seconds: float) -> Slice:
        """Have Spark write the rows' data into a new log each time."""
        return self._repeat(self._write, seconds)

    def _write(self) -> None:
        with self.testbed.new_log(self.width) as log:
            writer = self._data().write.format("zlog").mode("append")
            writer.options(store=self.testbed.url, log=log).save()

    def write_parquet(self, seconds: float) -> Slice:
        """Have Spark write the rows' data into files."""
        copy = str(self.folder / "copy")
        return self._repeat(lambda: self._data().write.mode("overwrite").parquet(copy), seconds)

    def _data(self) -> DataFrame:
        return self.spark.read.parquet(self._parquet).select("data")

    def _repeat(self, work: Callable[[], None], seconds: float) -> Slice:
        def call() -> int:
            work()
            return self.entries

        return repeat(call, seconds)


def _batches(query: StreamingQuery) -> list[Batch]:
    """Return the last batches with rows. Spark keeps one hundred."""
    return [
        Batch(each.batchId, each.numInputRows, each.durationMs["triggerExecution"] / 1000)
        for each in query.recentProgress
        if each.numInputRows
    ]


def _slice(batches: Sequence[Batch]) -> Slice:
    latencies = array("d", (each.seconds for each in batches))
    rows = sum(each.rows for each in batches)
    return Slice(len(batches), rows, sum(latencies), latencies)


def _into_nothing(table: DataFrame) -> None:
    table.write.format("noop").mode("overwrite").save()


def _comparisons(loads: SparkLoads) -> Iterator[tuple[str, Candidate, list[Candidate]]]:
    yield (
        "Spark reads",
        Candidate("Spark, zlog", 'format("zlog"), all columns', loads.batch),
        [
            Candidate("Spark, Parquet", "the same rows from files", loads.parquet),
            Candidate("read_columns", "the library, one process, without Spark", loads.columns),
            Candidate("read_range", "the library, an object for each entry", loads.range),
        ],
    )
    yield (
        "Spark reads positions and timestamps",
        Candidate("Spark, zlog", "the option columns", loads.batch_without_data),
        [Candidate("Spark, Parquet", "the same columns of files", loads.parquet_without_data)],
    )
    how = "a call is a batch, from its planning to its commit; nothing is done with the rows"
    own = "rate-micro-batch, with as many rows and tasks, made up in the JVM"
    yield (
        "a stream's batches",
        Candidate("zlog's stream", how, loads.stream),
        [Candidate("Spark's source", own, loads.own_stream, Ratio.LATENCY)],
    )
    yield (
        f"a stream's batches of {_LOGS_OF_A_BATCH} logs among {len(loads.names) - 1}",
        Candidate("many logs", how, loads.many),
        [Candidate("one log", "with as many entries", loads.one, Ratio.LATENCY)],
    )
    yield (
        "Spark writes",
        Candidate("Spark, zlog", 'format("zlog"), rows of files', loads.write),
        [Candidate("Spark, Parquet", "files, of the same rows", loads.write_parquet)],
    )


@click.command(
    cls=Command,
    examples="""
    python -m bench spark
    python -m bench --store ceph://logs spark --entries 5000000 --seconds 20
    """,
)
@number_option("--entries", 1_000_000, 1, 1 << 27, "Entries of the log.")
@size_option("100")
@width_option
@number_option("--per-batch", 8000, 1, 1 << 27, "Entries of a stream's batch.")
@number_option("--logs", 1000, 1, 100_000, "Logs of a stream that reads many.")
@number_option("--rounds", ROUNDS, 1, 1000, "Turns of each measurement.")
@click.option("--master", metavar="URL", help="Spark's master.  [default: local[*]]")
@click.option("--spark-conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark.")
@bench_options
def spark(
    bench: Bench,
    entries: int,
    size: int,
    width: int,
    per_batch: int,
    logs: int,
    rounds: int,
    master: str | None,
    spark_conf: tuple[str, ...],
) -> list[Report]:
    """Measure how fast Spark reads a log, and writes one.

    A batch read of all entries is compared with Spark's read of the same rows from Parquet files,
    and with reads of the log without Spark; then again, without the entries' data. The batches of a
    streaming query are compared with those of a source of Spark's own, which has as many tasks and
    rows and does no work. The batches of a query over many logs, of which a few have new entries,
    are compared with those of a query over one log. A batch write is compared with the same write
    into files.
    """
    if entries <= _WARMING * per_batch:
        raise click.UsageError(f"--entries: less than {_WARMING + 1} batches of {per_batch}")
    bench = replace(bench, rounds=rounds)
    settings = {
        # If a stream is stopped during a batch, Spark reports this at length.
        "spark.log.level": "OFF",
        "spark.ui.enabled": "false",
        **dict(word.partition("=")[::2] for word in spark_conf),
    }
    workload = {"entries": entries, "size": size, "width": width, "per_batch": per_batch}
    reports = []
    with bench.testbed() as testbed:
        log = testbed.enter(testbed.new_log(width))
        folder = Path(testbed.enter(tempfile.TemporaryDirectory(prefix="zlog-bench-spark-")))
        session = testbed.enter(spark_session("bench", master, settings, delta=False))
        names = [testbed.enter(testbed.new_log(width)) for _ in range(1 + logs)]
        loads = SparkLoads(session, testbed, log, names, folder, **workload)
        loads.prepare()
        for what, load, limits in _comparisons(loads):
            bench.warm_up(load.run)
            title = f"{what}: {entries} entries of {size} B, width {width}"
            reports.append(bench.measure(load, limits, title, size, **workload))
    return reports
