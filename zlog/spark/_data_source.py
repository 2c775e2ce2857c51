"""The data source itself: what stands behind ``format("zlog")``."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from zlog.spark._options import SinkOptions, SourceOptions
from zlog.spark._source import BatchReader, StreamReader
from zlog.spark._write import BatchWriter, StreamWriter

_COLUMNS: dict[str, DataType] = {
    "position": LongType(),
    "stripe": IntegerType(),
    "timestamp": TimestampType(),
    "data": BinaryType(),
}

_OF_TABLE = "option."
"""What Spark puts before the names of options that ``CREATE TABLE`` gives."""

_KEPT = "zlog.options"
"""Key of the first column's metadata under which a table's options are kept."""


class ZlogDataSource(DataSource):
    """A log as a table.

    Columns: ``position``; ``stripe``, the index of the stripe object that holds it; ``timestamp``,
    when the entry was appended, by its writer's clock; ``data``. With the option ``includeTags``
    also ``tags``, an array of the entry's tags. With ``includeGaps``
    also ``state``: ``written``, ``filled``, ``trimmed``, ``lost`` or ``unreadable``; rows of gaps
    have neither timestamp nor data. The options are in docs/spark.md.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "zlog"

    def schema(self) -> StructType:
        """Return the columns.

        Of a table that is being created they carry its options: Spark keeps a table's columns as
        they are, and hands its options to no read of it.
        """
        kept = {
            name.removeprefix(_OF_TABLE): value
            for name, value in self.options.items()
            if name.startswith(_OF_TABLE)
        }
        columns = _columns(self.options)
        if kept:
            columns[0].metadata = {_KEPT: kept}
        return StructType(columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a batch read."""
        return BatchReader(SourceOptions.parse(self._read_options(schema)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return a streaming read."""
        return StreamReader(SourceOptions.parse(self._read_options(schema), streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a batch write."""
        _only_append(overwrite)
        return BatchWriter(SinkOptions.parse(self._given(schema)), schema)

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """Return a streaming write."""
        _only_append(overwrite)
        return StreamWriter(SinkOptions.parse(self._given(schema)), schema)

    def _given(self, schema: StructType) -> dict[str, str]:
        """Return the options of a table, if it is one, and those of this use of it."""
        kept = schema.fields[0].metadata.get(_KEPT, {}) if schema.fields else {}
        return {**kept, **self.options}

    def _read_options(self, schema: StructType) -> dict[str, str]:
        options = self._given(schema)
        names = [column.name for column in _columns(options)]
        if schema.fieldNames() != names:
            raise ValueError(
                f"a log has the columns {', '.join(names)}: give no schema, and no list of columns"
            )
        return options


def _columns(options: Mapping[str, str]) -> list[StructField]:
    columns = dict(_COLUMNS)
    if options.get("includetags", "false").lower() == "true":
        columns["tags"] = ArrayType(StringType())
    if options.get("includegaps", "false").lower() == "true":
        columns["state"] = StringType()
    return [StructField(name, kind) for name, kind in columns.items()]


def _only_append(overwrite: bool) -> None:
    if overwrite:
        raise ValueError("entries of a log are never overwritten: use the mode append")
