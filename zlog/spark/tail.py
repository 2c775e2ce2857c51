"""A query that copies a log into a table, for ``zlog spark tail`` and for programs."""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import functions as f

import zlog
from zlog.errors import CursorAhead, LogNotFound, ZlogError
from zlog.spark._failures import FAILURES, cause
from zlog.spark._log_planner import commit_cursor
from zlog.spark._offset import LogOffset, Offset
from zlog.spark.parse import NoParser, Parser
from zlog.tables.common import DATE, LogProgress, Progress, partitions_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryProgress
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_SECONDS = 1
_FINISH_SECONDS = 30.0
_STOP, _ENDED = "stop", "ended"
_PATTERN = re.compile(r"[*?\[]")

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tail:
    """The settings of a copy: the logs, the table, and how to copy.

    Attributes:
        store: the URL of the store.
        log: the name of the log, several names separated by commas, or a shell pattern. A table of
            several logs has the column ``log``.
        table: the path or URL of the table.
        checkpoint: the path or URL of the query's state.
        format: the format of the table: ``parquet``, ``json`` or ``delta``.
        parser: the parser that makes columns from entries.
        partition_by: the columns to partition the table by; None means the day of the append.
        drop_raw: whether to leave out the column ``data``.
        cursor: the name of each log's cursor that follows the query; None means no cursor.
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
        options = {"store": self.store, option_of(self.log): self.log, **self.options}
        if self.cursor is not None:
            options["cursor"] = self.cursor
        entries = spark.readStream.format("zlog").options(**options).load()
        table, partitions = self._columns(entries)
        writer = (
            table.writeStream.format(self.format)
            .queryName(f"zlog tail {self.log}")
            .option("checkpointLocation", self.checkpoint)
            .trigger(**self.trigger)
        )
        return (writer.partitionBy(*partitions) if partitions else writer).start(self.table)

    def _columns(self, entries: DataFrame) -> tuple[DataFrame, list[str]]:
        table = self.parser.apply(entries)
        if self.drop_raw:
            table = table.drop("data")
        partitions = partitions_of(table.columns, self.partition_by)
        if DATE in partitions and DATE not in table.columns:
            table = table.withColumn(DATE, f.to_date("timestamp"))
        return table, partitions


def option_of(log: str) -> Literal["log", "logs", "logsPattern"]:
    """Return the option that selects logs: by name, by names with commas, or by a pattern.

    Raises:
        ValueError: there are several patterns, or a pattern and names.
    """
    if not _PATTERN.search(log):
        return "logs" if "," in log else "log"
    if "," in log:
        raise ValueError(f"{log!r} must be one pattern, or names separated by commas")
    return "logsPattern"


def _progress_of(told: StreamingQueryProgress) -> Progress | None:
    """Read a progress report; None if it is empty, such as before the first batch."""
    source = told.sources[0]
    ends = _offsets(source.endOffset)
    if ends is None:
        return None
    starts, tails = _offsets(source.startOffset) or {}, _offsets(source.latestOffset) or {}
    logs = {
        name: LogProgress(
            starts[name].position if name in starts else end.since,
            end.position,
            max(end.position, tails[name].position if name in tails else 0),
        )
        for name, end in ends.items()
    }
    seconds = told.durationMs.get("triggerExecution", 0) / 1000
    ids = {name: end.log_id for name, end in ends.items()}
    return Progress(told.batchId, told.numInputRows, seconds, logs, ids)


def _offsets(text: str | None) -> Mapping[str, LogOffset] | None:
    content = json.loads(text) if text and text != "null" else None
    return None if content is None else Offset.from_json(content).logs


class Run:
    """A running query.

    Args:
        query: the query that was started.
        log: returns the open log with a name.
        cursor: the name of each log's cursor that follows the query; None means no cursor.
    """

    def __init__(
        self, query: StreamingQuery, log: Callable[[str], zlog.Log], cursor: str | None
    ) -> None:
        self._query = query
        self._log = log
        self._cursor = cursor
        # A signal handler may fill this kind of queue at any point.
        self._events: queue.SimpleQueue[Progress | str | BaseException] = queue.SimpleQueue()
        self._seen = (-1, "")
        self._committed: dict[str, int] = {}

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
            progress = _progress_of(told)
            if progress is not None:
                yield progress

    def _commit(self, progress: Progress) -> None:
        """Move the cursors at once; Spark informs its source only with the next batch."""
        if self._cursor is None:
            return
        for name, each in progress.logs.items():
            if each.position <= self._committed.get(name, each.start):
                continue
            try:
                with contextlib.suppress(CursorAhead, LogNotFound):  # the planner also does this
                    log = self._log(name)
                    if log.view.log_id == progress.ids[name]:
                        commit_cursor(log, self._cursor, each.position)
                self._committed[name] = each.position
            except ZlogError as error:
                if not error.retryable:
                    raise
                _logger.warning("cursor %r could not be advanced yet: %s", self._cursor, error)


def _identity(told: StreamingQueryProgress) -> tuple[int, str]:
    return told.batchId, told.timestamp
