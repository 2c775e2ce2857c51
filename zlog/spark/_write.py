"""Writes: each task appends its rows, a part at a time.

What is appended is durable and visible at once, and a log gives no entry back: there is nothing to
commit, and nothing to undo when a job fails. Entries are written at least once: Spark runs a task
again that failed after it appended, and a streaming query a batch that it has no record of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc
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
    """What a task has done."""

    entries: int


class Appender:
    """Appends rows of one column to a log."""

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
        self._log = LogRef(options.store, options.log)

    def append(self, batches: Iterator[pa.RecordBatch]) -> Appended:
        """Append all rows of a task, in their order.

        Raises:
            ValueError: a row is null. What came before it stays appended.
        """
        log = self._log.open()
        entries = 0
        for batch in batches:
            for part in _parts(batch.column(0)):
                log.append_many(part)
                entries += len(part)
        return Appended(entries)


def _parts(column: pa.Array) -> Iterator[list[bytes]]:
    """Cut a column into lists that are appended in one go."""
    if column.null_count:
        raise ValueError("a null can't be an entry: leave such rows out, or write empty ones")
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
    """``df.writeStream.format("zlog")``."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._appender = Appender(options, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Append one task's rows of a batch, in a worker."""
        return self._appender.append(iterator)
