"""How fast does Spark read and write a log? ``python -m bench.spark --store URL``.

A batch read of all entries is compared with Spark's read of the same rows from Parquet files on the
local disk, and with reads of the log without Spark, as columns and as entries. The batches of a
streaming query are compared with those of Spark's own source for as many tasks and rows, which does
no work. A batch write into a log is compared with the same write into Parquet files.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import zlog
from bench.measure import ROUNDS, Candidate, Ratio, Slice, in_turns, repeat
from bench.results import Report, show
from bench.testbed import Testbed, new_testbed
from zlog.cli.commands.spark.session import spark_session
from zlog.cli.session import Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_APPEND = 4096
"""The number of entries per append."""

_WARMING = 2
"""Batches at the start of a query that are not counted: its code is still being compiled."""

_BATCHES_MIN = 3

_BATCHES_OF_A_QUERY = 20
"""Batches of a query that are counted. The query ends by itself, because Spark's workers report
broken pipes on stderr if a query is stopped during a batch."""


class Batch(NamedTuple):
    """A batch of a streaming query: its number, its rows, and the seconds from plan to commit."""

    number: int
    rows: int
    seconds: float


class SparkLoads:
    """Reads and writes with and without Spark. Each public method that takes seconds is a load."""

    def __init__(
        self,
        spark: SparkSession,
        testbed: Testbed,
        log: str,
        folder: Path,
        given: argparse.Namespace,
    ) -> None:
        self._spark = spark
        self._testbed = testbed
        self._log = log
        self._folder = folder
        self._given = given
        self._parquet = str(folder / "parquet")
        self._options = {"store": testbed.url, "log": log}
        self._queries = 0

    def prepare(self) -> None:
        """Write the log, and the same rows as Parquet. All entries differ."""
        with self._open() as log:
            for left in range(self._given.entries, 0, -_APPEND):
                log.append_many([os.urandom(self._given.size) for _ in range(min(left, _APPEND))])
        self._table().write.parquet(self._parquet)

    def _open(self) -> zlog.Log:
        return zlog.Log.open(self._testbed.store, self._log, timeout=self._testbed.timeout)

    def _table(self) -> DataFrame:
        return self._spark.read.format("zlog").options(**self._options).load()

    def batch(self, seconds: float) -> Slice:
        """Have Spark read the log."""
        return self._repeat(lambda: _into_nothing(self._table()), seconds)

    def parquet(self, seconds: float) -> Slice:
        """Have Spark read the files."""
        return self._repeat(lambda: _into_nothing(self._spark.read.parquet(self._parquet)), seconds)

    def columns(self, seconds: float) -> Slice:
        """Read the log as columns."""
        with self._open() as log:
            return self._repeat(lambda: self._check_columns(log), seconds)

    def range(self, seconds: float) -> Slice:
        """Read the log as entries."""
        with self._open() as log:
            return self._repeat(lambda: self._check_range(log), seconds)

    def _check_columns(self, log: zlog.Log) -> None:
        rows = sum(len(columns) for columns in log.read_columns(0, self._given.entries))
        if rows != self._given.entries:
            raise zlog.CorruptEntry(f"the log has {rows} entries, not {self._given.entries}")

    def _check_range(self, log: zlog.Log) -> None:
        last = deque(log.read_range(0, self._given.entries), 1).pop()
        if not isinstance(last, zlog.Entry) or last.end != self._given.entries:
            raise zlog.CorruptEntry(f"the log ends with {last}")

    def stream(self, seconds: float) -> Slice:
        """Run streaming queries over the end of the log."""
        per_batch = self._given.per_batch
        start = max(0, self._given.entries - (_WARMING + _BATCHES_OF_A_QUERY) * per_batch)
        reader = self._spark.readStream.format("zlog").options(**self._options)
        reader = reader.option("startingPosition", start)
        table = reader.option("maxEntriesPerTrigger", per_batch).load()
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
        reader = self._spark.readStream.format("rate-micro-batch")
        reader = reader.option("rowsPerBatch", self._given.per_batch)
        table = reader.option("numPartitions", self._given.width).load()
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

    def _start(self, table: DataFrame, **trigger: Any) -> StreamingQuery:
        self._queries += 1
        checkpoint = self._folder / f"checkpoint-{self._queries}"
        writer = table.writeStream.format("noop").trigger(**trigger)
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def write(self, seconds: float) -> Slice:
        """Have Spark write the rows' data into a new log each time."""
        return self._repeat(self._write, seconds)

    def _write(self) -> None:
        with self._testbed.new_log(self._given.width) as log:
            writer = self._data().write.format("zlog").mode("append")
            writer.options(store=self._testbed.url, log=log).save()

    def write_parquet(self, seconds: float) -> Slice:
        """Have Spark write the rows' data into files."""
        copy = str(self._folder / "copy")
        return self._repeat(lambda: self._data().write.mode("overwrite").parquet(copy), seconds)

    def _data(self) -> DataFrame:
        return self._spark.read.parquet(self._parquet).select("data")

    def _repeat(self, work: Callable[[], None], seconds: float) -> Slice:
        def call() -> int:
            work()
            return int(self._given.entries)

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
    how = "a call is a batch, from its planning to its commit; nothing is done with the rows"
    own = "rate-micro-batch, with as many rows and tasks, made up in the JVM"
    yield (
        "a stream's batches",
        Candidate("zlog's stream", how, loads.stream),
        [Candidate("Spark's source", own, loads.own_stream, Ratio.LATENCY)],
    )
    yield (
        "Spark writes",
        Candidate("Spark, zlog", 'format("zlog"), rows of files', loads.write),
        [Candidate("Spark, Parquet", "files, of the same rows", loads.write_parquet)],
    )


def measure(given: argparse.Namespace) -> Iterator[Report]:
    """Measure Spark on a store with the options of the command line."""
    workload = {key: value for key, value in vars(given).items() if key != "json"}
    settings = {
        # If a stream is stopped during a batch, Spark reports this at length.
        "spark.log.level": "OFF",
        "spark.ui.enabled": "false",
        **dict(word.partition("=")[::2] for word in given.spark_conf),
    }
    with ExitStack() as stack:
        testbed = stack.enter_context(new_testbed(Session(given.store)))
        log = stack.enter_context(testbed.new_log(given.width))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zlog-bench-spark-")))
        spark = stack.enter_context(spark_session("bench", given.master, settings, delta=False))
        loads = SparkLoads(spark, testbed, log, folder, given)
        loads.prepare()
        where = f"{given.entries} entries of {given.size} B, width {given.width}, on {given.store}"
        for what, load, limits in _comparisons(loads):
            load.run(given.seconds / given.rounds / 2)
            measured = in_turns(load, limits, given.seconds, given.size, given.rounds)
            yield Report("spark", f"{what}: {where}", workload, measured)


def main() -> None:
    """Measure a store, and print a table or a JSON object for each comparison."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--store", required=True, help="URL of the store")
    parser.add_argument("--entries", type=int, default=1_000_000, help="(%(default)s)")
    parser.add_argument("--size", type=int, default=100, help="bytes of an entry (%(default)s)")
    parser.add_argument("--width", type=int, default=8, help="stripe objects (%(default)s)")
    parser.add_argument("--per-batch", type=int, default=8000, help="entries per streaming batch")
    parser.add_argument("--seconds", type=float, default=20.0, help="time per load (%(default)g)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="turns of each (%(default)s)")
    parser.add_argument("--master", help="Spark's master (local[*])")
    parser.add_argument("--spark-conf", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--json", action="store_true", help="print JSON objects")
    given = parser.parse_args()
    if given.entries <= _WARMING * given.per_batch:
        parser.error(f"--entries: these are not {_WARMING + 1} batches of {given.per_batch}")
    show([*measure(given)], as_json=given.json)


if __name__ == "__main__":
    main()
