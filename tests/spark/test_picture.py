"""examples/spark_counts.py: what it counts is what it draws."""

from __future__ import annotations

import importlib.util
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from ..support.programs import REPOSITORY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPT = REPOSITORY / "examples" / "spark_counts.py"


@pytest.fixture
def example() -> Any:
    spec = importlib.util.spec_from_file_location("spark_counts", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lines_are_counted_per_minute_and_component(example: Any, spark: SparkSession) -> None:
    rows = [("12:00:00.008", "api"), ("12:00:59.9", "api"), ("12:00:04", "compute")]
    rows.append(("12:01:00", "api"))
    text = [(f"2026-01-31 {time}", who) for time, who in rows]
    lines = spark.createDataFrame(text, "t string, component string")
    counts = example.counted(lines.selectExpr("cast(t as timestamp) as time", "component"))
    assert [(row[0].minute, row[1], row[2]) for row in counts.collect()] == [
        (0, "api", 2),
        (0, "compute", 1),
        (1, "api", 1),
    ]


def test_the_bars_of_a_minute_have_the_height_of_its_counts(example: Any) -> None:
    minutes = [datetime(2026, 1, 31, 12, minute, tzinfo=timezone.utc) for minute in (0, 1)]
    # More components than colours: the smallest ones are drawn together.
    counts = [(minutes[0], f"component-{i}", 10 + i) for i in range(9)]
    counts += [(minutes[1], "component-0", 5)]
    axes = example.draw(counts).axes[0]
    tops = dict.fromkeys(range(2), 0.0)
    for bars in axes.containers:
        for minute, bar in enumerate(bars):
            tops[minute] = max(tops[minute], bar.get_y() + bar.get_height())
    assert tops == {0: sum(count for _, _, count in counts[:9]), 1: 5}
    assert len(axes.containers) == len(example.COLOURS) + 1
