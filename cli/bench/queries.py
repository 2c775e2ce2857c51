"""What Spark does with logs, as it is measured."""

from __future__ import annotations

import os
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import zlog
from zlog.cli.bench.measure import Slice
from zlog.cli.bench.place import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_APPEND = 4096
"""Entries of one append."""

WARMING = 2
"""Batches at a query's start that don't count: its code is still being made."""

_BATCHES_MIN = 3

_BATCHES_OF_A_QUERY = 20
"""Batches that count, of a query over a log. It ends by itself: were it stopped amid a batch, the
workers of Spark would tell of broken pipes on stderr."""


class SparkLoads:
    """Reads and writes, by Spark and without it; each method of the lower half is a contender.

    Args:
        spark: the session.
        place: where the log is.
        log: the name of the log that is read.
        folder: for Parquet and for checkpoints.
        per_batch: rows of a streaming query's batch, at most.
        width: of the log.

    Attributes:
        entries: that the log has.
        cores: tasks that run at the same time.
    """

    def __init__(
        self,
        spark: SparkSession,
        place: Place,
        log: str,
        folder: Path,
        per_batch: int,
        width: int,
    ) -> None:
        self.per_batch = per_batch
        self.entries = 0
        self.cores = int(spark.sparkContext.defaultParallelism)
        self._spark = spark
        self._place = place
        self._log = log
        self._folder = folder
        self._width = width
        self._options = {"store": place.url, "log": log}
        self._queries = 0

    def prepare(self, entries: int, size: int) -> None:
        """Write the log, and the same rows as Parquet. No two entries are alike."""
        with zlog.Log.open(self._place.store, self._log, timeout=self._place.timeout) as log:
            for left in range(entries, 0, -_APPEND):
                log.append_many([os.urandom(size) for _ in range(min(left, _APPEND))])
        self.entries = entries
        self._table().write.parquet(self._parquet)

    @property
    def _parquet(self) -> str:
        return str(self._folder / "parquet")

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
        with zlog.Log.open(self._place.store, self._log, timeout=self._place.timeout) as log:
            return self._repeat(lambda: self._check_columns(log), seconds)

    def range(self, seconds: float) -> Slice:
        """Read the log as entries."""
        with zlog.Log.open(self._place.store, self._log, timeout=self._place.timeout) as log:
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
        reader = self._spark.readStream.format("zlog").options(**self._options)
        rows = (WARMING + _BATCHES_OF_A_QUERY) * self.per_batch
        reader = reader.option("startingPosition", max(0, self.entries - rows))
        table = reader.option("maxEntriesPerTrigger", self.per_batch).load()
        batches: list[Batch] = []
        began = time.monotonic()
        while True:
            query = self._start(table, availableNow=True)
            query.awaitTermination()
            batches += _batches(query)[WARMING:]
            if time.monotonic() >= began + seconds:
                return _slice(batches)

    def own_stream(self, seconds: float) -> Slice:
        """Run a streaming query over rows that Spark makes up."""
        reader = self._spark.readStream.format("rate-micro-batch")
        reader = reader.option("rowsPerBatch", self.per_batch)
        table = reader.option("numPartitions", self._width).load()
        query = self._start(table, processingTime="0 seconds")
        told: dict[int, Batch] = {}
        began = time.monotonic()
        try:
            while len(told) < WARMING + _BATCHES_MIN or time.monotonic() < began + seconds:
                if query.awaitTermination(1):  # raises what made it fail
                    break
                told |= {each.number: each for each in _batches(query)}
        finally:
            query.stop()
        return _slice([told[number] for number in sorted(told)][WARMING:])

    def _start(self, table: DataFrame, **trigger: Any) -> StreamingQuery:
        self._queries += 1
        checkpoint = self._folder / f"checkpoint-{self._queries}"
        writer = table.writeStream.format("noop").trigger(**trigger)
        return writer.option("checkpointLocation", str(checkpoint)).start()

    def write(self, seconds: float) -> Slice:
        """Have Spark write the rows' data into a log, a new one each time."""
        return self._repeat(self._write, seconds)

    def _write(self) -> None:
        with self._place.new_log(self._width) as log:
            writer = self._data().write.format("zlog").mode("append")
            writer.options(store=self._place.url, log=log).save()

    def write_parquet(self, seconds: float) -> Slice:
        """Have Spark write the rows' data into files."""
        copy = str(self._folder / "copy")
        return self._repeat(lambda: self._data().write.parquet(copy, mode="overwrite"), seconds)

    def _data(self) -> DataFrame:
        return self._spark.read.parquet(self._parquet).select("data")

    def _repeat(self, action: Callable[[], object], seconds: float) -> Slice:
        """Read or write everything, again and again; once at least."""
        latencies = array("d")
        now = began = time.perf_counter()
        while not latencies or now < began + seconds:
            action()
            before, now = now, time.perf_counter()
            latencies.append(now - before)
        return Slice(len(latencies), len(latencies) * self.entries, now - began, latencies)


class Batch(NamedTuple):
    """A batch of a streaming query.

    Attributes:
        number: of the query's batches, from 0.
        rows: that it had.
        seconds: from its planning to its commit.
    """

    number: int
    rows: int
    seconds: float


def _batches(query: StreamingQuery) -> list[Batch]:
    """Return the last batches that had rows; Spark keeps a hundred."""
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
