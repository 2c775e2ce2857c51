"""A lookup finds for each row the same entry as a search of the whole log."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import zlog
from zlog.spark.lookup import lookup

from ..client.clocks import NOW, set_clocks
from .conftest import SECONDS

TAGS = ["k-a", "k-b", "k-c"]
PAST, FUTURE = -100_000_000, 1_000_000_000


def fill(log: zlog.Log, base: int) -> None:
    """Append entries with two clocks, several of them at the same time, and trim some."""
    chance = random.Random(3)
    for second in range(base, base + 150):
        set_clocks(log, second % 1000, wall=second - 5 * (chance.random() < 0.2))
        some = [b"%d" % second] * chance.choice((1, 1, 3))
        log.append_many(some, tags_each=[chance.sample(TAGS, chance.randrange(3)) for _ in some])
        if second == base + 60:
            log.reconfigure(width=3)
    log.trim_to(30)
    for position in chance.sample(range(30, log.tail()), 30):
        log.trim(position)


def positions_in(rows: DataFrame) -> list[tuple[Any, ...] | None]:
    return [row.found and tuple(row.found) for row in rows.orderBy("number").collect()]


@pytest.mark.parametrize("base", [PAST, FUTURE], ids=["past", "future"])
def test_lookup_matches_search_of_whole_log(
    spark: SparkSession, log: zlog.Log, base: int, tmp_path: Path
) -> None:
    chance = random.Random(4)
    fill(log, base)
    latest = 90 if base == PAST else 160
    start = datetime.fromtimestamp(NOW + base, timezone.utc)
    rows = [
        (
            number,
            chance.choice(["a", "b", "c", "none", "x" * 200, None]),
            start + timedelta(0, second),
        )
        if (second := chance.randint(-9, latest)) % 10
        else (number, "a", None)
        for number in range(300)
    ]
    entries = [item for item in log.read_range() if isinstance(item, zlog.Entry)][::-1]
    expected = [
        next(
            (
                (item.position, item.timestamp.replace(tzinfo=None), item.data)
                for item in entries
                if when and f"k-{tag}" in item.tags and item.timestamp <= when
            ),
            None,
        )
        for _, tag, when in rows
    ]
    assert len({*expected}) > 30
    table = spark.createDataFrame(rows, "number int, tag string, time timestamp")
    how = {"on": "tag", "time": "time", "store": log.store.url, "prefix": "k-", "clock_skew": 5}
    assert positions_in(lookup(table, "orders", **how)) == expected
    if base == PAST:
        return
    table.write.parquet(str(tmp_path / "rows"))
    stream = spark.readStream.schema(table.schema).parquet(str(tmp_path / "rows"))
    delayed = lookup(stream.withWatermark("time", "1 minute"), "orders", **how)
    writer = delayed.dropDuplicatesWithinWatermark(["number", "time"]).writeStream
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "found"))
    assert query.awaitTermination(SECONDS)
    assert positions_in(spark.read.parquet(str(tmp_path / "found"))) == expected


def test_bad_input_is_refused(spark: SparkSession, log: zlog.Log) -> None:
    table = spark.createDataFrame([], "number int, tag string, time timestamp")
    how = {"on": "tag", "time": "time", "store": log.store.url}
    for change, message in (
        ({"on": "number"}, "of type string and timestamp, not int and"),
        ({"time": "tag"}, "timestamp, not string and string"),
        ({"into": "number"}, "'number' already exists"),
        ({"clock_skew": -1}, "must not be negative"),
    ):
        with pytest.raises(ValueError, match=message):
            lookup(table, "orders", **{**how, **change})  # type: ignore[arg-type]
    zlog.Log.remove(log.store, "orders")
    with pytest.raises(zlog.LogNotFound, match=r"'orders'.*\nHint: .*`zlog create orders`"):
        lookup(table, "orders", **how)
