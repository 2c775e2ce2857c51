"""Spark's reads, as they are measured."""

from __future__ import annotations

import os
import time
from array import array
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import zlog
from zlog.cli.bench.measure import Slice
from zlog.cli.bench.place import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_APPEND = 4096
"""Entries of one append."""

_WARMING = 2
"""Batches at a query's start that don't count: its code is still being made."""

_BATCHES_MIN = 3


class SparkReads:
    """Reads of one log, by Spark and without it; each method of the lower half is a contender.

    Args:
        spark: the session.
        place: where the log is.
        log: its name.
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
        """Run a streaming query over the log."""
        reader = self._spark.readStream.format("zlog").options(**self._options)
        return self._query(reader.option("maxEntriesPerTrigger", self.per_batch).load(), seconds)

    def own_stream(self, seconds: float) -> Slice:
        """Run a streaming query over rows that Spark makes up."""
        reader = self._spark.readStream.format("rate-micro-batch")
        reader = reader.option("rowsPerBatch", self.per_batch)
        return self._query(reader.option("numPartitions", self._width).load(), seconds)

    def _repeat(self, read: Callable[[], object], seconds: float) -> Slice:
        """Read everything, again and again; once at least."""
        latencies = array("d")
        now = began = time.perf_counter()
        while not latencies or now < began + seconds:
            read()
            before, now = now, time.perf_counter()
            latencies.append(now - before)
        return Slice(len(latencies), len(latencies) * self.entries, now - began, latencies)

    def _query(self, table: DataFrame, seconds: float) -> Slice:
        """Run a query for a while, and take its batches' durations from what it tells."""
        self._queries += 1
        writer = table.writeStream.format("noop").trigger(processingTime="0 seconds")
        checkpoint = self._folder / f"checkpoint-{self._queries}"
        query = writer.option("checkpointLocation", str(checkpoint)).start()
        told: dict[int, tuple[int, float]] = {}
        began = time.monotonic()
        try:
            while len(told) < _WARMING + _BATCHES_MIN or time.monotonic() < began + seconds:
                if query.awaitTermination(1):  # raises what made it fail
                    break
                for each in query.recentProgress:
                    if each.numInputRows:
                        took = each.durationMs["triggerExecution"] / 1000
                        told[each.batchId] = (each.numInputRows, took)
                if sum(rows for rows, _ in told.values()) >= self.entries:
                    break
        finally:
            query.stop()
        counted = [told[number] for number in sorted(told)][_WARMING:]
        latencies = array("d", (took for _, took in counted))
        rows = sum(rows for rows, _ in counted)
        return Slice(len(counted), rows, sum(latencies), latencies)


def _into_nothing(table: DataFrame) -> None:
    table.write.format("noop").mode("overwrite").save()
