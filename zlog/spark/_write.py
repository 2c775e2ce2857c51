"""Writes: each task appends its rows, a part at a time.

What is appended is durable and visible at once, and a log gives no entry back: there is nothing to
undo when a job fails. Spark runs a task again that failed after it appended, and a streaming query
a batch that it has no record of. A streaming write delivers (`zlog.Log.deliver`): the query is the
source, and a task is a part of its batch; so each row is appended once. A batch write has no name
that outlives it, and appends its rows at least once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import methodcaller
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import BinaryType, StringType, StructType

from zlog.spark._handles import LogRef
from zlog.spark._options import SinkOptions

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS_MAX = 16384
_BYTES_MAX = 16 << 20
"""What is appended in one go, which is also what a task holds."""


@dataclass
class Appended(WriterCommitMessage):
    """What a task has done.

    Attributes:
        entries: how many it appended.
        query: which query it was of; None: of none.
    """

    entries: int
    query: str | None = None


@dataclass(frozen=True, slots=True)
class StreamTask:
    """A task of a streaming query: what Spark tells it of itself, the same each time it is run."""

    query: str
    batch: int
    partition: int

    @classmethod
    def current(cls) -> StreamTask:
        """Return the task that this worker is running.

        Raises:
            RuntimeError: Spark does not tell of which query it is.
        """
        context = TaskContext.get()
        query = context and context.getLocalProperty("sql.streaming.queryId")
        batch = context and context.getLocalProperty("streaming.sql.batchId")
        if not (context and query and batch):
            raise RuntimeError(
                "Spark does not tell this task of which query and batch it is, and so nothing can"
                " be written exactly once: set the option exactlyOnce to false"
            )
        return cls(query, int(batch), context.partitionId())


class Appender:
    """Appends rows of one column to a log.

    Attributes:
        log: which one.
    """

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        """Take the table's columns.

        Raises:
            ValueError: it is not one column of text or bytes.
        """
        types = [field.dataType for field in schema.fields]
        if len(types) != 1 or not isinstance(types[0], (BinaryType, StringType)):
            raise ValueError(
                "an entry is made of one column of string or binary, not of"
                f" {schema.simpleString()}: select it, or make one with to_json(struct(…))"
            )
        self.log = LogRef(options.store, options.log)

    def deliver(self, batches: Iterator[pa.RecordBatch], task: StreamTask) -> Appended:
        """Append those rows of a task that it has not appended before, in their order.

        Raises:
            ValueError: a row is null. What came before it stays appended.
        """
        rows = (row for batch in batches for part in _parts(batch.column(0)) for row in part)
        appended = self.log.open().deliver(
            rows, source=task.query, batch=task.batch, part=task.partition
        )
        return Appended(appended, task.query)

    def append(self, batches: Iterator[pa.RecordBatch]) -> Appended:
        """Append all rows of a task, in their order.

        Raises:
            ValueError: a row is null. What came before it stays appended.
        """
        log = self.log.open()
        entries = 0
        for batch in batches:
            for part in _parts(batch.column(0)):
                log.append_many(part)
                entries += len(part)
        return Appended(entries)


def _parts(column: pa.Array) -> Iterator[list[bytes]]:
    """Cut a column into lists that are appended in one go."""
    if column.null_count:
        raise ValueError("a null is no entry: leave such rows out, or write empty ones")
    sizes = pc.binary_length(column)
    first = 0
    while first < len(column):
        rows = min(_ROWS_MAX, len(column) - first)
        while rows > 1 and pc.sum(sizes.slice(first, rows)).as_py() > _BYTES_MAX:
            rows //= 2
        values = column.slice(first, rows).to_pylist()
        yield [value.encode() if isinstance(value, str) else value for value in values]
        first += rows


class BatchWriter(DataSourceArrowWriter):
    """``df.write.format("zlog")``."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._appender = Appender(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Append one task's rows, in a worker."""
        return self._appender.append(iterator)


class StreamWriter(DataSourceStreamArrowWriter):
    """``df.writeStream.format("zlog")``: a new one for each batch."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._appender = Appender(options, schema)
        self._exactly_once = options.exactly_once

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Append one task's rows of a batch, in a worker."""
        if not self._exactly_once:
            return self._appender.append(iterator)
        return self._appender.deliver(iterator, StreamTask.current())

    def commit(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803  # Spark's name
    ) -> None:
        """Let the log forget the batches before this one, on the driver.

        Not this one: until Spark has a record of it, which comes after this, it may run it again.
        """
        queries = {each.query for each in messages if isinstance(each, Appended) and each.query}
        for query in queries:  # one, or none
            self._appender.log.call(methodcaller("deliveries_done", query, before=batchId))

    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803
    ) -> None:
        """Do nothing: what was appended counts, and the batch goes on from there."""
