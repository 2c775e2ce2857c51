"""Makes columns from entries, as ``zlog spark tail --parse`` does."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from zlog.spark._regex import LinePattern

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ENTRY_COLUMNS = ("position", "stripe", "timestamp", "data")
"""The columns of every table; ``data`` may be left out."""

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
    """Return the parser for the options ``--parse`` and ``--schema``.

    Args:
        how: ``json``, the path of a Python file (``….py``), a pattern with named groups, or None.
        schema: the names and types of columns in SQL's syntax, or None.

    Raises:
        ValueError: an argument is invalid. What only Spark can check is checked later.
        OSError: reading the file fails.
    """
    if how == "json":
        if schema is None:
            raise ValueError(
                "JSON needs --schema, such as 'time timestamp, level string': a stream's columns"
                " cannot change later, so they are not guessed from its first entries"
            )
        return JsonParser(schema)
    if how is not None and how.endswith(".py") and "(?P<" not in how:
        if schema is not None:
            raise ValueError("--schema cannot be used with a file: its parse() sets the columns")
        return FileParser.load(Path(how))
    if how is not None:
        pattern = LinePattern.compile(how)
        check_new(pattern.columns)
        return PatternParser(pattern, schema)
    if schema is not None:
        raise ValueError("--schema needs --parse")
    return NoParser()


def check_new(names: Iterable[str], taken: Iterable[str] = ENTRY_COLUMNS) -> None:
    """Raise ValueError if two columns would have the same name. Spark ignores the case of names."""
    seen = {name.lower() for name in taken}
    for name in names:
        if name.lower() in seen:
            raise ValueError(f"there are two columns {name!r}: give the parsed one another name")
        seen.add(name.lower())


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
            if unknown := set(self._types.names) - set(self.pattern.columns):
                raise ValueError(f"--schema: the pattern has no group {', '.join(sorted(unknown))}")

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

    @classmethod
    def load(cls, path: Path) -> FileParser:
        """Load the function by running its file.

        Raises:
            OSError: the file can't be read.
            ValueError: running the file fails, or it has no such function.
        """
        source = path.read_bytes()
        spec = importlib.util.spec_from_loader(path.stem, loader=None)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        module.__file__ = str(path)
        try:
            exec(compile(source, path, "exec"), module.__dict__)  # noqa: S102  # the user's own
        except Exception as error:
            raise ValueError(f"{path}: {type(error).__name__}: {error}") from error
        parse = getattr(module, "parse", None)
        if not callable(parse):
            raise ValueError(f"{path} has no function parse(entries)")
        return cls(path, parse)

    def prepare(self, spark: SparkSession) -> None:
        """Do nothing, because the function raises its errors when it is called."""

    def apply(self, entries: DataFrame) -> DataFrame:
        """Return the result of the function for the table."""
        table = self.parse(entries)
        if not isinstance(table, type(entries)):
            raise ValueError(f"parse() of {self.path} must return a DataFrame, not {table!r}")
        return table
