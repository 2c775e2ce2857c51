"""Logs as tables, of which PyArrow, Polars and DuckDB read only what a query needs.

    zlog.tables.scan_polars(log).filter(pl.col("position") >= 1_000_000).collect()

A table has a row for each entry, in the order of positions, and no rows for gaps. The packages that
this module needs are in the extra ``tables``. :meth:`zlog.Log.read_columns` needs none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from zlog.tables.query import scan_polars, to_arrow, to_duckdb

__all__ = ["scan_polars", "to_arrow", "to_duckdb"]


def __getattr__(name: str) -> Any:
    """Import the functions when they are used. Copies of logs into tables do not need Polars."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from zlog.tables import query

    return getattr(query, name)
