"""Is the table exact?"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "OFF",
}


@dataclass(frozen=True)
class Found:
    """What the table holds.

    Attributes:
        rows: of it.
        positions: different ones.
        numbers: different ones in the entries.
        last: the highest position; -1 for an empty table.
    """

    rows: int
    positions: int
    numbers: int
    last: int


def look(table: Path) -> Found:
    """Read the table, as Spark does: files that a killed task left behind are no part of it."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("spark-torture")
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        row = spark.read.parquet(str(table)).selectExpr(
            "count(*)",
            "count(distinct position)",
            "count(distinct data)",
            "coalesce(max(position), -1)",
        ).first()  # fmt: skip
        assert row is not None
        return Found(*row)
    finally:
        spark.stop()


def faults(found: Found, tail: int, acknowledged: int) -> list[str]:
    """Return what the table has otherwise than the log, in words; empty: nothing.

    Args:
        found: the table.
        tail: of the log, none of whose positions is a gap.
        acknowledged: different numbers that were appended.
    """
    said = []
    if found.rows != found.positions:
        said.append(f"{found.rows - found.positions} positions too many: some are there twice")
    if found.positions != tail or found.last != tail - 1:
        said.append(f"{found.positions} positions up to {found.last}, and the log's tail is {tail}")
    if found.numbers != acknowledged:
        said.append(f"{acknowledged} entries appended, {found.numbers} different ones in the table")
    return said
