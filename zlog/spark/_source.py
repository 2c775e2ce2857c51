"""The readers of Spark's Python Data Source API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from zlog.spark._driver import Planner
from zlog.spark._hints import shows_hints
from zlog.spark._offset import Offset
from zlog.spark._options import SourceOptions
from zlog.spark._plan import Shares
from zlog.spark._read import Task, read_task
from zlog.spark._stream import StreamPlanner

if TYPE_CHECKING:
    import pyarrow as pa


class TaskPartition(InputPartition):
    """A task in the form that Spark sends to a worker."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.task = task


def _partitions(options: SourceOptions, plan: Sequence[Shares]) -> list[InputPartition]:
    return [TaskPartition(Task(shares, options)) for shares in plan]


def _read(partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, TaskPartition)
    return read_task(partition.task)


@shows_hints
class BatchReader(DataSourceReader):
    """Plans and runs a batch read.

    It does not implement `pushFilters`, because Spark would apply the filter to all reads of the
    same DataFrame. Use the options to select entries.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Return the part of each task."""
        # Without a partition, Spark would add one.
        return _partitions(self._options, Planner(self._options).plan_batch() or [()])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task's rows, in a worker."""
        return _read(partition)


@shows_hints
class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming read."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._planner = StreamPlanner(options)

    def initialOffset(self) -> dict[str, object]:  # noqa: N802  # Spark's name
        """Return where a new query begins."""
        return self._to_json(self._planner.initial())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of a batch that the options set."""
        options = self._options
        if options.entries_max is not None:
            return ReadMaxRows(options.entries_max)
        return ReadAllAvailable() if options.bytes_max is None else ReadMaxBytes(options.bytes_max)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """End the query at the present tails."""
        self._planner.end_now()

    def latestOffset(  # noqa: N802
        self, start: Mapping[str, object], limit: ReadLimit
    ) -> dict[str, object]:
        """Return where the next batch ends."""
        entries_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        bytes_max = None if isinstance(limit, ReadAllAvailable) else self._options.bytes_max
        begin = Offset.from_json(start)
        latest = self._planner.latest(begin, entries_max, bytes_max)
        if latest is begin:  # in another form, it would be another batch to Spark
            return dict(start)
        return self._to_json(latest)

    def reportLatestOffset(self) -> dict[str, object]:  # noqa: N802
        """Return the ends of the logs, from which Spark computes the query's lag."""
        return self._to_json(self._planner.tail())

    def partitions(
        self,
        start: Mapping[str, object],  # the end contains the position where its batch began
        end: Mapping[str, object],
    ) -> Sequence[InputPartition]:
        """Return the part of each task of a batch."""
        return _partitions(self._options, self._planner.plan(Offset.from_json(end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task's rows, in a worker."""
        return _read(partition)

    def _to_json(self, offset: Offset) -> dict[str, object]:
        return offset.to_json(several=self._options.several)
