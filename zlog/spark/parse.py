"""Makes columns from entries, as ``zlog spark tail --parse`` does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from zlog.spark._regex import LinePattern
from zlog.tables.common import check_groups, check_new, function_of, kind_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_PARSED = "zlog_parsed"


class Parser(Protocol):
    """Adds columns to a table of entries."""

    def prepare(self, spark: SparkSession) -> None:
        """Let Spark, which must be running, check the schema. Raises ValueError if it is wrong."""
        ...

    def apply(self, entries: DataFrame) -> DataFrame:
        """Return the table with the columns. It has all rows, even if they do not match."""
        ...


def parser_of(how: str | None, schema: str | None) -> Parser:
    """Return the parser for the options ``--parse`` and ``--schema``: see :func:`kind_of`.

    Raises:
        ValueError: an argument is invalid. What only Spark can check is checked later.
        OSError: reading the file fails.
    """
    kind = kind_of(how, schema)
    if how is None:
        return NoParser()
    if kind == "file":
        return FileParser(Path(how), function_of(how))
    if kind == "json":
        return JsonParser(str(schema))
    pattern = LinePattern.compile(how)
    check_new(pattern.columns)
    return PatternParser(pattern, schema)


def text_of(data: str = "data") -> Column:
    """Return entries as text. Bytes that are not UTF-8 become U+FFFD and cause no error."""
    return f.make_valid_utf8(f.col(data).cast("string"))


def _declared(schema: str) -> StructType:
    try:
        declared = StructType.fromDDL(schema)
    except PySparkException as error:
        raise ValueError(f"--schema {schema!r}: {_first_line(error)}") from error
    if not isinstance(declared, StructType):  # Spark accepts a single type as a schema
        raise ValueError(
            f"--schema {schema!r}: use names and types, such as 'id long, price double'"
        )
    return declared


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


class NoParser:
    """A parser that does not change the entries."""

    def prepare(self, spark: SparkSession) -> None:
        """Do nothing."""

    def apply(self, entries: DataFrame) -> DataFrame:
        """Return the table as it is."""
        return entries


@dataclass
class PatternParser:
    """A parser that matches lines with a pattern, and makes a column from each named group.

    In a line that does not match, all these columns are null.

    Attributes:
        pattern: the pattern, which may match anywhere in a line.
        schema: the types of some groups; the others are strings.
    """

    pattern: LinePattern
    schema: str | None = None
    _types: StructType | None = None

    def prepare(self, spark: SparkSession) -> None:
        """Compile the pattern in Java, and check the types."""
        try:
            spark.range(1).select(f.regexp_extract(f.lit(""), self.pattern.java, 0)).collect()
        except PySparkException as error:
            raise ValueError(
                f"Java does not understand the pattern: {_first_line(error)}"
            ) from error
        if self.schema is not None:
            self._types = _declared(self.schema)
            check_groups(self._types.names, self.pattern.columns)

    def apply(self, entries: DataFrame) -> DataFrame:
        """Return the table with a column for each group."""
        types = {} if self._types is None else {each.name: each.dataType for each in self._types}
        line, java = text_of(), self.pattern.java
        matches = f.rlike(line, f.lit(java))

        def column(name: str, number: int) -> Column:
            found = f.when(matches, f.regexp_extract(line, java, number))
            return (found.try_cast(types[name]) if name in types else found).alias(name)

        columns = [column(name, number) for name, number in self.pattern.columns.items()]
        return entries.select("*", *columns)


@dataclass
class JsonParser:
    """A parser that makes columns from JSON objects. For other entries, the columns are null.

    Attributes:
        schema: the names and types of the fields.
    """

    schema: str
    _types: StructType | None = None

    def prepare(self, spark: SparkSession) -> None:  # the check needs a Spark session
        """Check the fields."""
        self._types = _declared(self.schema)
        check_new(self._types.names)

    def apply(self, entries: DataFrame) -> DataFrame:
        """Return the table with a column for each field."""
        assert self._types is not None
        parsed = f.from_json(text_of(), self._types, {"mode": "PERMISSIVE"})
        return entries.withColumn(_PARSED, parsed).select("*", f"{_PARSED}.*").drop(_PARSED)


@dataclass
class FileParser:
    """A parser that passes the table to the function ``parse(entries)`` of a Python file.

    Attributes:
        path: the path of the file.
        parse: the file's function.
    """

    path: Path
    parse: Callable[[DataFrame], DataFrame]

    def prepare(self, spark: SparkSession) -> None:
        """Do nothing, because the function raises its errors when it is called."""

    def apply(self, entries: DataFrame) -> DataFrame:
        """Return the result of the function for the table."""
        table = self.parse(entries)
        if not isinstance(table, type(entries)):
            raise ValueError(f"parse() of {self.path} must return a DataFrame, not {table!r}")
        return table
