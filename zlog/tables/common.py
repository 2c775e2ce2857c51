"""What ``zlog table tail`` and ``zlog spark tail`` have in common."""

from __future__ import annotations

import hashlib
import re
import runpy
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from zlog.limits import NAME_BYTES_MAX

ENTRY_COLUMNS = ("position", "stripe", "timestamp", "data")
"""The columns of every table; ``data`` may be left out."""

DATE = "date"
"""The column by which a table is partitioned by default: the day of the append."""

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


def kind_of(how: str | None, schema: str | None) -> Literal["none", "json", "file", "pattern"]:
    """Return the kind of parser that the options ``--parse`` and ``--schema`` select.

    Args:
        how: ``json``, the path of a Python file (``….py``), a pattern with named groups, or None.
        schema: the names and types of columns in SQL's syntax, or None.

    Raises:
        ValueError: the schema is missing, or cannot be used with this parser.
    """
    if how is None:
        if schema is not None:
            raise ValueError("--schema needs --parse")
        return "none"
    if how == "json":
        if schema is None:
            raise ValueError(
                "JSON needs --schema, such as 'time timestamp, level string': a table's columns"
                " cannot change later, so they are not guessed from its first entries"
            )
        return "json"
    if how.endswith(".py") and "(?P<" not in how:
        if schema is not None:
            raise ValueError("--schema cannot be used with a file: its parse() sets the columns")
        return "file"
    return "pattern"


def check_new(names: Iterable[str], taken: Iterable[str] = ENTRY_COLUMNS) -> None:
    """Raise ValueError if two columns would have the same name. Spark ignores the case of names."""
    seen = {name.lower() for name in taken}
    for name in names:
        if name.lower() in seen:
            raise ValueError(f"there are two columns {name!r}: give the parsed one another name")
        seen.add(name.lower())


def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern. Raises ValueError if it is invalid or names no group."""
    try:
        with warnings.catch_warnings():
            # Python may give nested sets a meaning later. Today such a bracket is literal.
            warnings.simplefilter("ignore", FutureWarning)
            found = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"the pattern does not compile: {error}") from None
    if not found.groupindex:
        raise ValueError(
            "the pattern has no named group; for instance, (?P<level>INFO|WARN) makes a column"
            " level"
        )
    return found


def check_groups(names: Iterable[str], pattern: Iterable[str]) -> None:
    """Raise ValueError if a name is not the name of a group of the pattern."""
    if unknown := set(names) - set(pattern):
        raise ValueError(f"--schema: the pattern has no group {', '.join(sorted(unknown))}")


def function_of(path: str) -> Callable[[Any], Any]:
    """Return the function ``parse`` of a Python file, and run the file for this.

    Raises:
        OSError: the file can't be read.
        ValueError: running the file fails, or it has no such function.
    """
    try:
        parse: Callable[[Any], Any] | None = runpy.run_path(path).get("parse")
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{path}: {type(error).__name__}: {error}") from error
    if not callable(parse):
        raise ValueError(f"{path} has no function parse(entries)")
    return parse


def partitions_of(columns: Iterable[str], partition_by: Iterable[str] | None) -> list[str]:
    """Return the columns to partition a table by. None means the day of the append, `DATE`.

    Args:
        columns: the table's columns, without one that is computed for a partition.
        partition_by: the columns that the user has named, if any.

    Raises:
        ValueError: a column does not exist, or the table would have no other columns.
    """
    known = [*columns]
    if partition_by is None:
        check_new([DATE], known)
        partition_by = [DATE]
    found = [*partition_by]
    if DATE in found and DATE not in known:
        if "timestamp" not in known:
            raise ValueError("the column date is computed from timestamp, which is missing")
        known.append(DATE)
    if unknown := [name for name in found if name not in known]:
        raise ValueError(
            f"cannot partition by {', '.join(unknown)}; the columns are {', '.join(known)}"
        )
    if not set(known) - set(found):
        raise ValueError("a table must have at least one column that it is not partitioned by")
    return found


def cursor_name_of(table: str, unique: str, prefix: str = "spark") -> str:
    """Return the name of a copy's cursor, which contains the table's name for readability.

    Args:
        table: the path of the table.
        unique: a path that no other copy has, so that two copies never share a cursor.
        prefix: the beginning of the name.
    """
    digest = hashlib.sha256(unique.encode()).hexdigest()[:8]
    words = _NOT_IN_A_NAME.sub("-", table.rstrip("/").rpartition("/")[2]).strip("-.") or "table"
    space = NAME_BYTES_MAX - len(f"{prefix}--{digest}")
    return f"{prefix}-{words[:space]}-{digest}"


class LogProgress(NamedTuple):
    """The progress of a copy in one log.

    Attributes:
        start: the position at which the batch began.
        position: the next position to copy. All entries below it are in the table.
        tail: the log's tail, when the batch began or later.
    """

    start: int
    position: int
    tail: int


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a copy.

    Attributes:
        batch: the number of the batch. Without Spark, each run counts from 0.
        rows: the number of rows of the batch; 0 if there was nothing new.
        seconds: the duration of the batch.
        logs: the progress in each log, by name.
        ids: the ids of these logs. A repeated batch may be of a log that this one is a mirror of.
    """

    batch: int
    rows: int
    seconds: float
    logs: Mapping[str, LogProgress]
    ids: Mapping[str, int] = field(default_factory=dict)

    @property
    def lag(self) -> int:
        """The number of positions between the table and the tails."""
        return sum(max(0, each.tail - each.position) for each in self.logs.values())
