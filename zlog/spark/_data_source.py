"""The data source itself: what stands behind ``format("zlog")``."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from zlog.spark._options import SinkOptions, SourceOptions
from zlog.spark._source import BatchReader, StreamReader
from zlog.spark._write import BatchWriter, StreamWriter

_COLUMNS = "position bigint, stripe int, timestamp timestamp, data binary"


class ZlogDataSource(DataSource):
    """A log as a table.

    Columns: ``position``; ``stripe``, the index of the stripe object that holds it; ``timestamp``,
    when the entry was appended, by its writer's clock; ``data``. With the option ``includeGaps``
    also ``state``: ``written``, ``filled``, ``trimmed`` or ``lost``; rows of gaps have neither
    timestamp nor data. The options are in docs/spark.md.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "zlog"

    def schema(self) -> str:
        """Return the columns."""
        gaps = self.options.get("includegaps", "false").lower() == "true"
        return f"{_COLUMNS}, state string" if gaps else _COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a batch read."""
        self._check(schema)
        return BatchReader(SourceOptions.parse(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return a streaming read."""
        self._check(schema)
        return StreamReader(SourceOptions.parse(self.options, streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a batch write."""
        _only_append(overwrite)
        return BatchWriter(SinkOptions.parse(self.options), schema)

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """Return a streaming write."""
        _only_append(overwrite)
        return StreamWriter(SinkOptions.parse(self.options), schema)

    def _check(self, schema: StructType) -> None:
        names = [column.split()[0] for column in self.schema().split(", ")]
        if schema.fieldNames() != names:
            raise ValueError(f"a log has the columns {', '.join(names)}: don't give a schema")


def _only_append(overwrite: bool) -> None:
    if overwrite:
        raise ValueError("entries of a log are never overwritten: use the mode append")
