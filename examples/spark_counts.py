"""Draw how many lines each component wrote in each minute, from a table of parsed lines.

    python examples/spark_counts.py TABLE PICTURE

The table is of Parquet and has the columns ``time`` and ``component``, as `zlog spark tail --parse`
makes them of a log; docs/spark.md has the whole pipeline. The picture is an SVG, a PNG or whatever
its name ends in. Needs PySpark, matplotlib and a Java runtime.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib import rc_context
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLOURS = ["tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple", "tab:brown"]
"""One for each of the components that wrote most; the others are drawn together."""

MINUTE = 1 / (24 * 60)
"""In days, which are matplotlib's unit of time."""

Count = tuple[datetime, str, int]


def counted(lines: DataFrame) -> DataFrame:
    """Count lines per minute and component."""
    minute = f.date_trunc("minute", "time").alias("minute")
    return lines.groupBy(minute, "component").count().orderBy("minute", "component")


def draw(counts: Sequence[Count]) -> Figure:
    """Stack a bar for each minute of what its components wrote."""
    totals: Counter[str] = Counter()
    for _, component, count in counts:
        totals[component] += count
    largest = [component for component, _ in totals.most_common(len(COLOURS))]
    minutes = sorted({minute for minute, _, _ in counts})
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    below = [0] * len(minutes)
    for name, colour in [*zip(largest, COLOURS, strict=False), ("others", "tab:gray")]:
        heights = Counter[datetime]()
        for minute, component, count in counts:
            if component == name or (name == "others" and component not in largest):
                heights[minute] += count
        row = [heights[minute] for minute in minutes]
        if any(row):
            places = date2num(minutes)
            width = 0.8 * MINUTE
            axes.bar(places, row, width, bottom=below, color=colour, label=name, align="edge")
        below = [sum(pair) for pair in zip(below, row, strict=True)]
    locator = AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.set_ylabel("lines per minute")
    figure.legend(loc="outside right upper", fontsize=8)
    return figure


def main() -> None:
    """Count and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("table", help="path of the Parquet table")
    parser.add_argument("picture", type=Path, help="file that is written")
    arguments = parser.parse_args()
    spark = (
        SparkSession.builder.appName("spark_counts")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    lines = spark.read.parquet(arguments.table).where("time is not null")
    # Text of the day, so that this machine's time zone has no say.
    rows = counted(lines).withColumn("minute", f.col("minute").cast("string")).collect()
    spark.stop()
    figure = draw([(datetime.fromisoformat(row[0]), row[1], row[2]) for row in rows])
    # The same counts make the same file.
    with rc_context({"svg.hashsalt": "zlog", "svg.fonttype": "none"}):
        metadata = {"Date": None} if arguments.picture.suffix == ".svg" else None
        figure.savefig(arguments.picture, metadata=metadata)


if __name__ == "__main__":
    main()
