"""The functions of :mod:`zlog.tables`."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from io import StringIO
from types import SimpleNamespace
from typing import Any, NamedTuple

from zlog import Columns, InvalidTag, Log, Match, distribution
from zlog.extension import no_entry

try:
    import duckdb
    import polars as pl
    import pyarrow as pa
    import pyarrow.dataset as ds
    from polars.io.plugins import register_io_source
except ImportError as error:
    raise ImportError(
        f"zlog.tables needs {distribution.requirements('tables')} ({error});"
        f" {distribution.how_to_install('tables')}"
    ) from error

__all__ = ["scan_polars", "to_arrow", "to_duckdb"]

_TYPES = {
    "position": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "data": pa.binary(),
    "tags": pa.list_(pa.string()),
}
_SCHEMA = pa.schema(_TYPES)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_END = 2**63 - 1

_Ranges = Mapping[str, tuple[int, int]]
"""For some columns, the values ``[low, high)`` that a filter may select. Times are in µs."""

_ALL = (0, _END)


class _Rows(NamedTuple):
    """The rows of a table; :func:`to_arrow` describes the fields."""

    log: Log
    start: int
    end: int | None
    tags: Collection[str] | None
    match: Match
    since: datetime | float | None
    until: datetime | float | None
    clock_skew: float | None

    def read(
        self, columns: Collection[str], ranges: _Ranges, required: Collection[str] = ()
    ) -> Iterator[Columns]:
        """Read at least the rows that a filter selects: those in ``ranges``, with these tags."""
        log, (low, high) = self.log, ranges.get("position", _ALL)
        log.read_columns(self.start, self.end, tags=self.tags, match=self.match)  # checks them
        start, end = max(self.start, low), high if self.end is None else min(self.end, high)
        if self.since is not None:
            start = max(start, log.find_time(self.since))
        if self.until is not None:
            end = min(end, log.find_time(self.until))
        if self.clock_skew is not None:
            if self.clock_skew < 0:
                raise ValueError(f"clock_skew must not be negative, as {self.clock_skew} is")
            # Timestamps decrease by the skew at most. So if an entry is older than low - skew, all
            # entries before it are older than low; and likewise after an entry from high + skew on.
            skew, (low, high) = round(self.clock_skew * 1e6), ranges.get("timestamp", _ALL)
            start = max(start, log.find_time(_time(low - skew)) if low > 0 else 0)
            end = min(end, log.find_time(_time(high + skew)) if high < _END else _END)
        tags, match = self.tags, self.match
        if required and (tags is None or match == "all"):
            tags, match = {*required, *(tags or ())}, "all"
        try:
            for window in log.read_columns(
                start,
                max(start, end),
                with_data="data" in columns,
                with_tags="tags" in columns,
                tags=tags,
                match=match,
            ):
                for gap in window.gaps:
                    if gap.kind.hides_entry:
                        raise no_entry(gap, log.name)
                yield window
        except InvalidTag:  # no entry can have the tags that the filter requires
            return


def _time(us: int) -> datetime:
    return _EPOCH + min(us, 253_402_300_799_999_999) * _MICROSECOND  # at most in the year 9999


def to_arrow(
    log: Log,
    start: int = 0,
    end: int | None = None,
    *,
    tags: Collection[str] | None = None,
    match: Match = "any",
    since: datetime | float | None = None,
    until: datetime | float | None = None,
    clock_skew: float | None = None,
    columns: Collection[str] | None = None,
    filter: ds.Expression | None = None,
) -> pa.RecordBatchReader:
    """Return a reader of a log. Its method ``read_all`` returns a ``pyarrow.Table``.

    Args:
        log: the log, which must stay open while the rows are read.
        start, end, tags, match: the entries to read, as in :meth:`zlog.Log.read_columns`.
        since, until: begin at the first entry that is not older than ``since``, and end before the
            first that is not older than ``until``; see :meth:`zlog.Log.find_time`.
        clock_skew: how many seconds timestamps may decrease along the log because writers' clocks
            differ. With it, a filter of timestamps reads only a part of the log, but misses entries
            if timestamps decrease by more. None means that such a filter reads the whole range.
        columns: the columns, out of position, timestamp, data and tags; None means all.
        filter: an expression that selects rows. If it limits positions, only these are read.

    Raises KeyError if a column does not exist, and when it is read, the errors of ``read_columns``.
    """
    rows = _Rows(log, start, end, tags, match, since, until, clock_skew)
    return _arrow(rows, columns, filter)


def _arrow(
    rows: _Rows, columns: Collection[str] | None, where: ds.Expression | None
) -> pa.RecordBatchReader:
    names, text = [*(_TYPES if columns is None else columns)], str(where)
    used = {name for name in _TYPES if name in names or name in text}
    ranges: _Ranges = {}
    if where is not None:
        ranges = {name: _range_of(where, name) for name in ("position", "timestamp")}

    def batches() -> Iterator[pa.RecordBatch]:
        for window in rows.read(used, ranges):
            table = pa.table(window)
            table = table if where is None else table.filter(where)
            yield from table.select(names).to_batches()

    schema = pa.schema([_SCHEMA.field(name) for name in names])
    return pa.RecordBatchReader.from_batches(schema, batches())


def _range_of(where: ds.Expression, name: str) -> tuple[int, int]:
    """Return the values ``[low, high)`` of a column that an expression may select.

    PyArrow cannot list the conditions in an expression. But given a fact about all rows of a file,
    it can tell whether the expression may select any of them.
    """
    column, kind, form = ds.field(name), _TYPES[name], ds.IpcFileFormat()

    def selects(fact: ds.Expression) -> bool:
        file = form.make_fragment(pa.py_buffer(b""), partition_expression=fact)
        return any(True for _ in ds.FileSystemDataset([file], _SCHEMA, form).get_fragments(where))

    def first(test: Callable[[pa.Scalar], bool]) -> int:
        return bisect_left(range(_END), True, key=lambda value: test(pa.scalar(value, kind)))

    low = first(lambda value: selects(column <= value))
    return low, first(lambda value: not selects(column >= value))


def to_duckdb(
    log: Log,
    connection: duckdb.DuckDBPyConnection | None = None,
    start: int = 0,
    end: int | None = None,
    *,
    tags: Collection[str] | None = None,
    match: Match = "any",
    since: datetime | float | None = None,
    until: datetime | float | None = None,
    clock_skew: float | None = None,
) -> duckdb.DuckDBPyRelation:
    """Return a relation, which reads the log for each query. ``create_view`` names it.

    DuckDB reads only the columns that a query needs. Conditions on the position limit what it
    reads; conditions on tags do not. The connection is by default the one of DuckDB's module.
    :func:`to_arrow` describes the other arguments.
    """
    rows = _Rows(log, start, end, tags, match, since, until, clock_skew)
    source: Any = duckdb if connection is None else connection
    relation: duckdb.DuckDBPyRelation = source.from_arrow(_Dataset(rows))
    return relation


class _Dataset(ds.Dataset):
    """A table for DuckDB, which passes a query's columns and conditions only to datasets."""

    schema = _SCHEMA

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows

    def scanner(
        self, columns: list[str] | None, filter: ds.Expression | None = None, **_: object
    ) -> SimpleNamespace:
        """Return what DuckDB needs of a scanner."""
        return SimpleNamespace(to_reader=lambda: _arrow(self._rows, columns, filter))


def scan_polars(
    log: Log,
    start: int = 0,
    end: int | None = None,
    *,
    tags: Collection[str] | None = None,
    match: Match = "any",
    since: datetime | float | None = None,
    until: datetime | float | None = None,
    clock_skew: float | None = None,
) -> pl.LazyFrame:
    """Return a LazyFrame, which reads the log when it is collected.

    Polars reads only the columns that a query needs and, with ``head``, only as many rows. Filters
    of positions and ``pl.col("tags").list.contains(tag)`` limit what it reads. :func:`to_arrow`
    describes the arguments.
    """
    rows = _Rows(log, start, end, tags, match, since, until, clock_skew)

    def source(
        columns: list[str] | None, where: pl.Expr | None, rows_max: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        names, left = columns or [*_TYPES], rows_max
        # With a maximum, the predicate selects from the first rows, so all of these must be read.
        read = _conditions(where) if where is not None and left is None else ({}, [])
        for window in rows.read(names, *read):
            frame = pl.DataFrame(window)
            if left is not None:
                frame = frame.head(left)
                left -= len(frame)
            yield (frame if where is None else frame.filter(where)).select(names)
            if left == 0:
                break

    return register_io_source(source, schema=pl.DataFrame(_SCHEMA.empty_table()).schema)


def _conditions(where: pl.Expr) -> tuple[_Ranges, list[str]]:
    """Return the ranges and the tags outside of which a predicate selects no row."""
    ranges, tags = {"position": _ALL, "timestamp": _ALL}, []
    for operator, name, node in _comparisons(json.loads(where.meta.serialize(format="json"))):
        literal = pl.Expr.deserialize(StringIO(json.dumps(node)), format="json")
        value = pl.select(literal).item()
        if isinstance(value, datetime):
            value = (value - _EPOCH) // _MICROSECOND
        if operator == "Contains" and isinstance(value, str):
            tags.append(value)
        elif name in ranges and isinstance(value, int):
            low, high = ranges[name]
            low = max(low, value) if operator in ("Gt", "GtEq", "Eq") else low
            high = min(high, value + 1) if operator in ("Lt", "LtEq", "Eq") else high
            ranges[name] = low, high
    return ranges, tags


def _comparisons(node: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield operators, columns and literals of conditions that all selected rows must meet."""
    match node:
        case {"BinaryExpr": {"op": "And", "left": left, "right": right}}:
            yield from _comparisons(left)
            yield from _comparisons(right)
        case {"BinaryExpr": {"op": op, "left": {"Column": name}, "right": {"Literal": _} as value}}:
            yield op, name, value
        case {
            "Function": {
                "input": [{"Column": name}, {"Literal": _} as low, *rest],
                "function": {"Boolean": {"IsBetween": _}} | {"ListExpr": {"Contains": _}},
            }
        }:
            yield ("GtEq" if rest else "Contains"), name, low
            yield from (("LtEq", name, high) for high in rest if "Literal" in high)
