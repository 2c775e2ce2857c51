"""A query that copies a log into a table, for ``zlog spark tail`` and for programs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import queue
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

import zlog
from zlog.errors import CursorAhead, ZlogError
from zlog.limits import NAME_BYTES_MAX
from zlog.spark._driver import commit_cursor
from zlog.spark._failures import FAILURES, cause
from zlog.spark._offset import Offset
from zlog.spark.parse import NoParser, Parser, check_new

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

DATE = "date"
"""The column by which a table is partitioned by default: the day of the append."""

_LOOK_SECONDS = 1
_FINISH_SECONDS = 30.0
_STOP, _ENDED = "stop", "ended"
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tail:
    """The settings of a copy: the log, the table, and how to copy.

    Attributes:
        store, log: the URL of the store, and the name of the log.
        table: the path or URL of the table.
        checkpoint: the path or URL of the query's state.
        format: the format of the table: ``parquet``, ``json`` or ``delta``.
        parser: the parser that makes columns from entries.
        partition_by: the columns to partition the table by; None means the day of the append.
        drop_raw: whether to leave out the column ``data``.
        cursor: the name of the log's cursor that follows the query; None means no cursor.
        trigger: Spark's trigger, such as ``{"processingTime": "5 seconds"}``.
        options: the options of the read, by their names in ``format("zlog")``.
    """

    store: str
    log: str
    table: str
    checkpoint: str
    format: str = "parquet"
    parser: Parser = field(default_factory=NoParser)
    partition_by: Sequence[str] | None = None
    drop_raw: bool = False
    cursor: str | None = None
    trigger: Mapping[str, Any] = field(default_factory=lambda: {"processingTime": "5 seconds"})
    options: Mapping[str, str] = field(default_factory=dict)

    def start(self, spark: SparkSession) -> StreamingQuery:
        """Start the query.

        Raises:
            ValueError: the columns are invalid.
            ZlogError: Spark can't start the query.
        """
        try:
            return self._start(spark)
        except ValueError:
            raise
        except FAILURES as error:
            raise cause(error) from error

    def _start(self, spark: SparkSession) -> StreamingQuery:
        self.parser.prepare(spark)
        options = {"store": self.store, "log": self.log, **self.options}
        if self.cursor is not None:
            options["cursor"] = self.cursor
        entries = spark.readStream.format("zlog").options(**options).load()
        partitions = [DATE] if self.partition_by is None else self.partition_by
        writer = (
            self._columns(entries, partitions)
            .writeStream.format(self.format)
            .queryName(f"zlog tail {self.log}")
            .option("checkpointLocation", self.checkpoint)
            .trigger(**self.trigger)
        )
        return (writer.partitionBy(*partitions) if partitions else writer).start(self.table)

    def _columns(self, entries: DataFrame, partitions: Sequence[str]) -> DataFrame:
        table = self.parser.apply(entries)
        if self.partition_by is None:
            check_new([DATE], table.columns)
        if self.drop_raw:
            table = table.drop("data")
        if DATE in partitions and DATE not in table.columns:
            if "timestamp" not in table.columns:
                raise ValueError("the column date is computed from timestamp, which is missing")
            table = table.withColumn(DATE, f.to_date("timestamp"))
        if unknown := [name for name in partitions if name not in table.columns]:
            raise ValueError(
                f"cannot partition by {', '.join(unknown)}; the columns are"
                f" {', '.join(table.columns)}"
            )
        if not set(table.columns) - set(partitions):
            raise ValueError("a table must have at least one column that it is not partitioned by")
        return table


def cursor_name_of(table: str, checkpoint: str) -> str:
    """Return the name of a query's cursor, derived from its checkpoint's path.

    So two queries never share a cursor. The name also contains the table's name, for readability.
    """
    digest = hashlib.sha256(checkpoint.encode()).hexdigest()[:8]
    words = _NOT_IN_A_NAME.sub("-", table.rstrip("/").rpartition("/")[2]).strip("-.") or "table"
    space = NAME_BYTES_MAX - len(f"spark--{digest}")
    return f"spark-{words[:space]}-{digest}"


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a query.

    Attributes:
        batch: the number of the batch.
        rows: the number of rows of the batch; 0 if there was nothing new.
        start: the position at which the batch began.
        position: the next position to copy. All entries below it are in the table.
        tail: the log's tail, when the batch was planned or later.
        seconds: the duration of the batch.
    """

    batch: int
    rows: int
    start: int
    position: int
    tail: int
    seconds: float

    @property
    def lag(self) -> int:
        """The number of positions between the table and the tail."""
        return max(0, self.tail - self.position)

    @classmethod
    def of(cls, told: StreamingQueryProgress) -> Progress | None:
        """Read a progress report; None if it is empty, such as before the first batch."""
        source = told.sources[0]
        end = _offset(source.endOffset)
        if end is None:
            return None
        start, latest = _offset(source.startOffset), _offset(source.latestOffset)
        return cls(
            batch=told.batchId,
            rows=told.numInputRows,
            start=end.since if start is None else start.position,
            position=end.position,
            tail=max(end.position, 0 if latest is None else latest.position),
            seconds=told.durationMs.get("triggerExecution", 0) / 1000,
        )


def _offset(text: str | None) -> Offset | None:
    content = json.loads(text) if text and text != "null" else None
    return None if content is None else Offset.from_json(content)


class Run:
    """A running query.

    Args:
        query: the query that was started.
        log: the log whose cursor follows the query.
        cursor: the name of the cursor; None means no cursor.
    """

    def __init__(self, query: StreamingQuery, log: zlog.Log, cursor: str | None) -> None:
        self._query = query
        self._log = log
        self._cursor = cursor
        # A signal handler may fill this kind of queue at any point.
        self._events: queue.SimpleQueue[Progress | str | BaseException] = queue.SimpleQueue()
        self._seen = (-1, "")
        self._committed = -1

    def stop(self) -> None:
        """Stop the query after the current batch. A second call stops it at once.

        If the current batch takes too long, it is abandoned, and the next run repeats it.
        """
        self._events.put(_STOP)

    def progress(self) -> Iterator[Progress]:
        """Yield Spark's progress reports until the query ends or is stopped.

        Raises:
            ZlogError: planning a batch or running a task failed.
            Exception: watching the query failed in another way.
        """
        watcher = threading.Thread(target=self._watch, name="zlog-tail", daemon=True)
        watcher.start()
        for told in self._until_the_end():
            self._commit(told)
            yield told
        self._query.stop()
        watcher.join()
        while not self._events.empty():
            event = self._events.get()
            if isinstance(event, Progress):
                self._commit(event)
                yield event

    def _until_the_end(self) -> Iterator[Progress]:
        """Yield reports until the query has ended or must be stopped."""
        deadline: float | None = None
        while True:
            try:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                event = self._events.get(timeout=left)
            except queue.Empty:
                return
            if isinstance(event, BaseException):
                raise cause(event) from event
            if isinstance(event, Progress):
                yield event
            elif event == _ENDED or not self._query.status["isTriggerActive"]:
                return
            if deadline is not None:  # the batch is done, or a second signal came
                return
            if event == _STOP:
                deadline = time.monotonic() + _FINISH_SECONDS

    def _watch(self) -> None:
        """Wait for reports until the query has ended."""
        try:
            ended = False
            while not ended:
                ended = bool(self._query.awaitTermination(_LOOK_SECONDS))
                for each in self._news():
                    self._events.put(each)
            self._events.put(_ENDED)
        except Exception as error:  # noqa: BLE001  # raised in the thread that waits for reports
            self._events.put(error)

    def _news(self) -> Iterator[Progress]:
        """Yield reports since the last call."""
        last = self._query.lastProgress
        if last is None or _identity(last) == self._seen:
            return
        recent = self._query.recentProgress
        seen = [index for index, told in enumerate(recent) if _identity(told) == self._seen]
        self._seen = _identity(recent[-1])  # may be newer than `last`
        for told in recent[seen[-1] + 1 if seen else 0 :]:
            progress = Progress.of(told)
            if progress is not None:
                yield progress

    def _commit(self, progress: Progress) -> None:
        """Move the cursor at once; Spark informs its source only with the next batch."""
        if self._cursor is None or progress.position <= self._committed:
            return
        try:
            with contextlib.suppress(CursorAhead):  # the planner also moves the cursor
                commit_cursor(self._log, self._cursor, progress.position)
            self._committed = progress.position
        except ZlogError as error:
            if not error.retryable:
                raise
            _logger.warning("cursor %r could not be advanced yet: %s", self._cursor, error)


def _identity(told: StreamingQueryProgress) -> tuple[int, str]:
    return told.batchId, told.timestamp
