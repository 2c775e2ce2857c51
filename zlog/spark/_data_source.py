"""The data source of ``format("zlog")``."""

from __future__ import annotations

import re
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

from zlog.spark._options import BATCH_OPTIONS, STREAM_OPTIONS, SinkOptions, SourceOptions
from zlog.spark._source import BatchReader, StreamReader
from zlog.spark._write import BatchWriter, StreamWriter

_TYPES: dict[str, DataType] = {
    "log": StringType(),
    "position": LongType(),
    "stripe": IntegerType(),
    "timestamp": TimestampType(),
    "data": BinaryType(),
    "tags": ArrayType(StringType()),
    "state": StringType(),
}

_LOG = "log"
"""The column of a write that has the log of each row, if no option names a log."""

_OF_TABLE = "option."
"""The prefix that Spark adds to the names of options from ``CREATE TABLE``."""

_PROVIDER = "provider"
"""Options that Spark adds itself."""

_KEPT = "zlog.options"
"""Key of the first column's metadata under which a table's options are kept."""


class ZlogDataSource(DataSource):
    """The data source that lets Spark read and write a log as a table.

    The table has the columns ``position``, ``stripe`` (the index of the stripe object that holds
    the position), ``timestamp`` (when the entry was appended, by its writer's clock) and ``data``.
    A read of several logs also has the column ``log``. The option ``includeTags`` adds ``tags``, an
    array of strings. ``includeGaps`` adds rows for gaps, without timestamp and data, and the column
    ``state``. docs/spark.md describes all options.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "zlog"

    def schema(self) -> StructType:
        """Check the options, and return the columns.

        When a table is created, its options are also stored with the first column, because Spark
        does not pass them to later reads. They are visible as the column's comment in ``DESCRIBE
        TABLE`` and ``SHOW CREATE TABLE``.
        """
        if _PROVIDER not in self.options:
            return StructType(_columns(SourceOptions.parse(self.options, streaming=None)))
        kept = {
            name.removeprefix(_OF_TABLE): value
            for name, value in self.options.items()
            if name.startswith(_OF_TABLE)
        }
        first, *others = _columns(SourceOptions.parse(kept, streaming=None))
        first.metadata = {_KEPT: kept, "comment": f"USING zlog OPTIONS ({_as_sql(kept)})"}
        return StructType([first, *others])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a batch read."""
        return BatchReader(self._read_options(schema, streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return a streaming read."""
        return StreamReader(self._read_options(schema, streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return a batch write."""
        _only_append(overwrite)
        options = SinkOptions.parse(self.options, routed=_LOG in schema.names)
        return BatchWriter(options, schema)

    def streamWriter(  # noqa: N802
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """Return a streaming write."""
        _only_append(overwrite)
        routed = _LOG in schema.names
        return StreamWriter(SinkOptions.parse(self.options, streaming=True, routed=routed), schema)

    def _read_options(self, schema: StructType, *, streaming: bool) -> SourceOptions:
        """Return the options of this read, with those of the table if it reads a table."""
        kept = schema.fields[0].metadata.get(_KEPT, {}) if schema.fields else {}
        batch, stream = {*BATCH_OPTIONS}, {*STREAM_OPTIONS}
        unused = {name.lower() for name in (batch - stream if streaming else stream - batch)}
        kept = {name: value for name, value in kept.items() if name not in unused}
        options = SourceOptions.parse({**kept, **self.options}, streaming=streaming)
        if schema.fieldNames() != [*options.columns]:
            raise ValueError(
                f"this read has the columns {', '.join(options.columns)}; do not specify a"
                " schema or a list of columns"
            )
        return options


def _columns(options: SourceOptions) -> list[StructField]:
    return [StructField(name, _TYPES[name]) for name in options.columns]


def _as_sql(options: Mapping[str, str]) -> str:
    escaped = {name: re.sub(r"(['\\])", r"\\\1", value) for name, value in options.items()}
    return ", ".join(f"{name} '{value}'" for name, value in escaped.items())


def _only_append(overwrite: bool) -> None:
    if overwrite:
        raise ValueError("a log's entries cannot be overwritten; use the mode append")
