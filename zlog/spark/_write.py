"""Writes rows to a log. Each task appends its own rows.

An append takes effect at once, and cannot be undone if the job fails. But Spark may repeat a task
that has already appended rows, or a whole batch of a streaming query. So a streaming write uses
exactly-once appends (`zlog.Log.append_once`): the query is the producer, the batch number is the
sequence number, and each task is a part. A batch write does the same if the options `producer` and
`sequence` are set. Otherwise, it appends each row at least once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import ArrayType, BinaryType, StringType, StructType

from zlog.errors import SequenceDiffers
from zlog.extension import EntryColumn, tagged_each
from zlog.limits import APPEND_BYTES_MAX, APPEND_ENTRIES_MAX
from zlog.spark._handles import LogRef
from zlog.spark._hints import hints_shown, shows_hints
from zlog.spark._options import SinkOptions

if TYPE_CHECKING:
    from zlog import Log
    from zlog.extension import NewEntry


_TAGS = "tags"
"""The name of the column with the entries' tags, an array."""

_NULL = "a row is null; remove such rows, or write empty entries"


@dataclass
class Appended(WriterCommitMessage):
    """What a task reports to Spark's driver when it has appended its rows.

    Attributes:
        entries: the number of entries that the task has appended.
        query: the name of the query or producer, if each row is appended exactly once; otherwise
            None.
    """

    entries: int
    query: str | None = None


@dataclass(frozen=True, slots=True)
class ExactTask:
    """A task of an exactly-once append: its producer, and numbers that repetitions share."""

    query: str
    batch: int
    partition: int

    @classmethod
    def of(cls, producer: str, sequence: int) -> ExactTask:
        """Return the task of a batch write that this worker is running."""
        context = TaskContext.get()
        assert context is not None
        return cls(producer, sequence, context.partitionId())

    @classmethod
    def of_stream(cls) -> ExactTask:
        """Return the task that this worker runs for a streaming query.

        Raises:
            RuntimeError: Spark does not report which query and batch this is.
        """
        context = TaskContext.get()
        query = context and context.getLocalProperty("sql.streaming.queryId")
        batch = context and context.getLocalProperty("streaming.sql.batchId")
        if not (context and query and batch):
            raise RuntimeError(
                "Spark does not report the query and batch of this task, so rows cannot "
                "be written exactly once: set the option exactlyOnce to false"
            )
        return cls(query, int(batch), context.partitionId())


class Appender:
    """Appends rows to a log. One column contains the entries, and another may contain their tags.

    Attributes:
        log: the log to append to.
    """

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        """Find the columns with the entries and the tags in the table's schema.

        Raises:
            ValueError: the table does not consist of one column of text or bytes and, optionally, a
                column of tags.
        """
        types = {field.name: field.dataType for field in schema.fields}
        tags = types.pop(_TAGS, None) if len(schema.fields) == 2 else None
        if not all(isinstance(kind, (BinaryType, StringType)) for kind in types.values()) or (
            len(schema.fields) != 1 + (tags is not None)
        ):
            raise ValueError(
                "the table must have one column of type string or binary, and may have a column"
                f" {_TAGS} of tags; it has {schema.simpleString()}. Select the column, or make one"
                " with to_json(struct(…))"
            )
        if tags is not None and not (
            isinstance(tags, ArrayType) and isinstance(tags.elementType, StringType)
        ):
            raise ValueError(f"the column {_TAGS} must be array<string>, not {tags.simpleString()}")
        names = [field.name for field in schema.fields]
        self._tags = names.index(_TAGS) if tags is not None else None
        self.log = LogRef(options.store, options.log, mac_key_file=options.mac_key_file)

    def append_once(self, batches: Iterator[pa.RecordBatch], task: ExactTask) -> Appended:
        """Append a task's rows in order, except those that an earlier attempt has already appended.

        Raises:
            ValueError: a row is null. The rows before it stay in the log.
        """
        columns = _columns(batches, self._tags)
        entries = cast("Iterator[bytes]", _items(columns))  # which `append_once` takes as well
        appended = self.log.open().append_once(
            entries, producer=task.query, sequence=task.batch, part=task.partition
        )
        return Appended(appended, task.query)

    def done(self, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        """Let the log forget all batches before this one, since all tasks of this batch have ended.

        The log must still remember this batch, because Spark may repeat it.

        Raises:
            SequenceDiffers: an earlier run of this batch had more tasks, so some of its rows may be
                in the log twice.
        """
        queries = [each.query for each in messages if isinstance(each, Appended) and each.query]
        for query in set(queries):  # at most one
            self.log.call(partial(_done, query=query, batch=batch, tasks=len(queries)))

    def append(self, batches: Iterator[pa.RecordBatch]) -> Appended:
        """Append all rows of a task, in order.

        Raises:
            ValueError: a row is null. The rows before it stay in the log.
        """
        log = self.log.open()
        entries = 0
        for column, tags in _columns(batches, self._tags):
            log.append_many(column, tags_each=tags)
            entries += len(column)
        return Appended(entries)


def _done(log: Log, query: str, batch: int, tasks: int) -> None:
    log.complete_sequences(query, before=batch)
    parts = max((each.parts for each in log.producers() if each.name == query), default=0)
    if parts > tasks:
        raise SequenceDiffers(
            f"log {log.name!r}: batch {batch} of {query!r} was written by {tasks} tasks, but"
            f" earlier by {parts}, so rows may be in the log twice",
            hint="Write each batch with the same number of partitions: call repartition(N, COLUMN)"
            " or coalesce(1) before the write.",
        )


def _items(
    columns: Iterator[tuple[EntryColumn, list[list[str]] | None]],
) -> Iterator[EntryColumn | NewEntry]:
    for column, tags in columns:
        if tags is None:
            yield column
        else:
            yield from tagged_each(column, tags)


def _columns(
    batches: Iterator[pa.RecordBatch], tags: int | None
) -> Iterator[tuple[EntryColumn, list[list[str]] | None]]:
    """Yield columns of entries, each for one append, with the tags of the entries.

    Without tags, several of Spark's batches, which have 10,000 rows each, are joined into one
    column.

    Args:
        batches: the batches of rows.
        tags: the index of the column with the tags; None means that there is none.
    """
    if tags is not None:
        for batch in batches:
            column = batch.column(1 - tags)
            if column.null_count:
                raise ValueError(_NULL)
            own = [each or [] for each in batch.column(tags).to_pylist()]
            if any(tag is None for each in own for tag in each):
                raise ValueError("a tag is null: remove it from the array")
            yield _joined([column]), own
        return
    for joined in _joined_columns(batches):
        yield joined, None


def _joined_columns(batches: Iterator[pa.RecordBatch]) -> Iterator[EntryColumn]:
    some: list[pa.Array] = []
    rows = size = 0
    for batch in batches:
        column = batch.column(0)
        if column.null_count:
            yield _joined(some)
            raise ValueError(_NULL)
        if rows + len(column) > APPEND_ENTRIES_MAX or size + column.nbytes > APPEND_BYTES_MAX:
            yield _joined(some)
            some, rows, size = [], 0, 0
        some.append(column)
        rows += len(column)
        size += column.nbytes
    yield _joined(some)


def _joined(columns: list[pa.Array]) -> EntryColumn:
    if not columns:
        return EntryColumn(bytes(4), b"")
    column = pa.concat_arrays(columns).cast(pa.binary())
    _, offsets, data = column.buffers()
    return EntryColumn(offsets[4 * column.offset :][: 4 * (len(column) + 1)], data or b"")


def _checked(options: SinkOptions, schema: StructType) -> Appender:
    """Return an appender for a log. Raises LogNotFound if the log does not exist."""
    appender = Appender(options, schema)
    with hints_shown(options.log):
        appender.log.forget()  # this process may have a handle on a log that was removed
        appender.log.call(lambda _: None)
    return appender


@shows_hints
class BatchWriter(DataSourceArrowWriter):
    """``df.write.format("zlog")``."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options = options
        self._appender = _checked(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Append one task's rows, in a worker."""
        producer, sequence = self._options.producer, self._options.sequence
        if producer is None or sequence is None:
            return self._appender.append(iterator)
        return self._appender.append_once(iterator, ExactTask.of(producer, sequence))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """End an exactly-once append; see :meth:`Appender.done`."""
        if self._options.sequence is not None:
            self._appender.done(messages, self._options.sequence)


@shows_hints
class StreamWriter(DataSourceStreamArrowWriter):
    """``df.writeStream.format("zlog")``. Spark creates it for the query and for each batch."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options = options
        self._appender = _checked(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Append one task's rows of a batch, in a worker."""
        if not self._options.exactly_once:
            return self._appender.append(iterator)
        return self._appender.append_once(iterator, ExactTask.of_stream())

    def commit(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803  # Spark's name
    ) -> None:
        """End a batch; see :meth:`Appender.done`."""
        self._appender.done(messages, batchId)

    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803
    ) -> None:
        """Do nothing, because appended entries stay and a repeated batch continues after them."""
