"""The interface of a table that entries are copied into, and its errors."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa

from zlog.errors import ZlogError


class WrongTable(ZlogError):
    """The table is not a copy of this log with these settings. It was not changed."""

    hint = "Use another path for this copy (--to)."


class TableConflict(ZlogError):
    """Another process copies into the table, which has each position once."""

    hint = "Stop one of the processes. A process that is started again continues where they ended."


class TableError(ZlogError):
    """Reading or writing the table failed. The next run continues with the table as it is."""

    hint = "Correct the cause and start the copy again. --debug shows where it failed."


class State(NamedTuple):
    """A record in the table of its origin, as JSON, and of the next position to copy."""

    origin: str
    position: int


class Sink(Protocol):
    """A table. The process may die at any point of a method, and the next one calls `load`."""

    def load(self) -> State | None:
        """Return the state of the table, or None if it does not exist.

        Raises:
            WrongTable: the place holds something else.
            TableConflict: another process has the table open.
        """

    def create(self, state: State, schema: pa.Schema, partitions: Sequence[str]) -> None:
        """Create the table, partitioned by some of its columns."""

    def append(self, rows: pa.Table, start: int, end: int) -> None:
        """Add the rows of the positions ``[start, end)``, and set the position to ``end``.

        Raises:
            TableConflict: the table's position is not ``start``. Nothing was added.
        """

    def close(self) -> None:
        """Release the table."""


def sink_of(table: str, format: str, catalog: str | None = None) -> Sink:
    """Return a table that may not exist yet.

    Args:
        table: the path or URL of the table.
        format: ``parquet``, ``delta`` or ``iceberg``.
        catalog: the catalog of an Iceberg table; see :class:`zlog.tables.iceberg.IcebergSink`.

    Raises:
        ImportError: a package of the extra ``tables`` is missing.
        WrongTable: the format needs another kind of path.
    """
    kind = getattr(importlib.import_module(f"zlog.tables.{format}"), f"{format.capitalize()}Sink")
    arguments = (catalog,) if format == "iceberg" else ()
    sink: Sink = kind(table.removeprefix("file://"), *arguments)
    return sink


def not_ours(table: str) -> WrongTable:
    """Return the error for a place that holds something else."""
    return WrongTable(f"{table} exists, but was not made by `zlog table tail`")


def moved(table: str, start: int, now: int) -> TableConflict:
    """Return the error for a table that another process has added to."""
    return TableConflict(f"{table} is at position {now}, not {start}: another process copies too")


def check_empty(table: str) -> None:
    """Raise WrongTable if a new table would share a folder with other files."""
    folder = Path(table)
    if folder.is_dir() and any(each.name[0] not in "._" for each in folder.iterdir()):
        raise not_ours(table)
