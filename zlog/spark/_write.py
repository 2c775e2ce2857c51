"""Writes rows to logs. Each task appends its own rows.

An append takes effect at once, and cannot be undone if the job fails. But Spark may repeat a task
that has already appended rows, or a whole batch of a streaming query. So a streaming write uses
exactly-once appends (`zlog.Log.append_once`): the query is the producer, the batch number is the
sequence number, and each task is a part. A batch write does the same if the options `producer` and
`sequence` are set. Otherwise, it appends each row at least once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import ArrayType, BinaryType, StringType, StructType

from zlog.errors import LogNotFound, SequenceDiffers
from zlog.extension import EntryColumn, tagged_each
from zlog.limits import APPEND_BYTES_MAX, APPEND_ENTRIES_MAX
from zlog.names import check_log_name
from zlog.spark._handles import LogRef
from zlog.spark._hints import hints_shown, shows_hints
from zlog.spark._options import SinkOptions

if TYPE_CHECKING:
    from zlog import Log
    from zlog.extension import NewEntry


_LOG, _TAGS = "log", "tags"
"""The names of the columns with each row's log, and with the entries' tags, an array."""

_LOGS_AT_ONCE = 8

_NULL = "a row is null; remove such rows, or write empty entries"


@dataclass
class Appended(WriterCommitMessage):
    """What a task reports to Spark's driver when it has appended its rows.

    Attributes:
        entries: the number of entries that the task has appended.
        logs: the names of the logs that the task's rows belong to.
        query: the name of the query or producer, if each row is appended exactly once; otherwise
            None.
    """

    entries: int
    logs: tuple[str, ...]
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
    """Appends rows to a log, or each row to the log that its column ``log`` names.

    One more column contains the entries, and another may contain their tags.
    """

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        """Find the columns in the table's schema.

        Raises:
            ValueError: the table has other columns, or columns of other types.
        """
        types = {field.name: field.dataType for field in schema.fields}
        if options.log is None and not isinstance(kind := types.pop(_LOG), StringType):
            raise ValueError(f"the column {_LOG} must be string, not {kind.simpleString()}")
        tags = types.pop(_TAGS, None) if len(types) == 2 else None
        if [isinstance(each, (BinaryType, StringType)) for each in types.values()] != [True]:
            raise ValueError(
                "the table must have one column of type string or binary, and may have a column"
                f" {_TAGS} of tags; it has {schema.simpleString()}. Select the column, or make one"
                " with to_json(struct(…)). To write to several logs, add a column"
                f" {_LOG} and do not set the option {_LOG}"
            )
        if tags is not None and not (
            isinstance(tags, ArrayType) and isinstance(tags.elementType, StringType)
        ):
            raise ValueError(f"the column {_TAGS} must be array<string>, not {tags.simpleString()}")
        rest = [name for name in schema.names if name in types or name == _TAGS]  # without the log
        self._tags = None if tags is None else rest.index(_TAGS)
        self._options = options

    def check(self) -> None:
        """Raise LogNotFound if the only log does not exist, or create it if so requested."""
        if self._options.log is not None:
            with hints_shown(self._options.log):
                self._find(self._options.log)

    def append_once(self, batches: Iterator[pa.RecordBatch], task: ExactTask) -> Appended:
        """Append a task's rows in order, except those that an earlier attempt has already appended.

        Raises:
            ValueError: a row is null. The rows before it stay in the log.
        """

        def append(log: LogRef, rows: Iterator[pa.RecordBatch]) -> int:
            columns = _columns(rows, self._tags)
            entries = cast("Iterator[bytes]", _items(columns))  # which `append_once` takes as well
            return log.open().append_once(
                entries, producer=task.query, sequence=task.batch, part=task.partition
            )

        return self._append(batches, append, task.query)

    def append(self, batches: Iterator[pa.RecordBatch]) -> Appended:
        """Append all rows of a task, in order.

        Raises:
            ValueError: a row is null. The rows before it stay in the log.
        """

        def append(log: LogRef, rows: Iterator[pa.RecordBatch]) -> int:
            entries = 0
            for column, tags in _columns(rows, self._tags):
                log.open().append_many(column, tags_each=tags)
                entries += len(column)
            return entries

        return self._append(batches, append, None)

    def done(self, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        """Let the logs forget all batches before this one, whose tasks have all ended.

        A log must still remember this batch, because Spark may repeat it.

        Raises:
            SequenceDiffers: an earlier run of this batch had more tasks, so some of its rows may be
                in the log twice.
        """
        tasks = Counter(
            (each.query, name)
            for each in messages
            if isinstance(each, Appended) and each.query
            for name in each.logs
        )
        for (query, name), count in tasks.items():
            self._log(name).call(partial(_done, query=query, batch=batch, tasks=count))

    def _append(
        self,
        batches: Iterator[pa.RecordBatch],
        append: Callable[[LogRef, Iterator[pa.RecordBatch]], int],
        query: str | None,
    ) -> Appended:
        if self._options.log is not None:
            self._find(self._options.log)
            return Appended(
                append(self._log(self._options.log), batches), (self._options.log,), query
            )
        with rows_by_log(batches) as found, ThreadPoolExecutor(_LOGS_AT_ONCE) as pool:

            def run(name: str) -> int:
                with hints_shown(name):
                    return append(self._log(name), found[name])

            for opened in [pool.submit(self._find, name) for name in found]:
                opened.result()  # so that nothing is appended if a log does not exist
            return Appended(sum(pool.map(run, found)), (*found,), query)

    def _find(self, name: str) -> None:
        """Open a log, and again if this process has a handle on a log that was removed."""
        log = replace(self._log(name), create=self._options.create_log)
        try:
            log.call(lambda handle: handle.earliest())
        except LogNotFound as error:
            error.hint += " The option createLog=true creates it."
            raise

    def _log(self, name: str) -> LogRef:
        options = self._options
        return LogRef(options.store, name, mac_key_file=options.mac_key_file)


@contextmanager
def rows_by_log(
    batches: Iterable[pa.RecordBatch],
) -> Iterator[Mapping[str, Iterator[pa.RecordBatch]]]:
    """Divide rows by their column ``log``, which is left out. The rows of a log keep their order.

    The rows are in a temporary file for the length of the ``with`` block.

    Raises:
        ValueError: a name is null or invalid.
    """
    found: dict[str, list[tuple[int, int, int]]] = {}  # number of a batch, first row, rows
    with NamedTemporaryFile(prefix="zlog-rows-") as file:
        writer = None
        for number, batch in enumerate(batches):
            names = batch[_LOG]
            if names.null_count:
                raise ValueError(f"the column {_LOG} is null in a row")
            kept = [name for name in batch.schema.names if name != _LOG]
            ordered = batch.select(kept).take(pc.sort_indices(names))  # a stable sort
            writer = writer or pa.ipc.new_file(file, ordered.schema)
            writer.write_batch(ordered)
            first = 0
            for name, count in sorted(Counter(names.to_pylist()).items()):
                found.setdefault(check_log_name(name), []).append((number, first, count))
                first += count
        if writer is None:
            yield {}
            return
        writer.close()
        file.flush()
        with pa.memory_map(file.name) as mapped:
            reader = pa.ipc.open_file(mapped)
            parts = [reader.get_batch(number) for number in range(reader.num_record_batches)]
            yield {
                name: (parts[number].slice(first, count) for number, first, count in slices)
                for name, slices in found.items()
            }


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


@shows_hints
class BatchWriter(DataSourceArrowWriter):
    """``df.write.format("zlog")``."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._options = options
        self._appender = Appender(options, schema)
        self._appender.check()

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
        self._appender = Appender(options, schema)
        self._appender.check()

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
