"""Reads of a log whose oldest stripes are files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import zlog
from zlog.offload import Offloader
from zlog.spark.files import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("trimmed", [0, 130])
def test_files_and_objects_are_one_table(spark: SparkSession, tmp_path: Path, trimmed: int) -> None:
    store = zlog.connect(f"file://{tmp_path}/store")
    with store, zlog.Log.create(store, "orders", width=3, stripe_unit=4) as log:
        for stripe in range(4):
            log.append_many([b"%d.%d" % (stripe, i) for i in range(100)], tags=[f"s{stripe}"])
            log.roll()
        for _ in Offloader(log, str(tmp_path / "files")).run():
            pass
        log.append(b"last", tags=["hot"])
        log.trim_to(trimmed)
        wanted = [(e.position, e.data, e.timestamp, e.tags) for e in log.read_range(trimmed)]
    source = spark.read.format("zlog").options(store=store.url, log="orders", includeTags=True)
    for table in (read(spark, store.url, "orders", tags=True), source.load()):
        rows = table.select("position", "data", "timestamp", "tags").orderBy("position").collect()
        found = [(r.position, bytes(r.data), r.timestamp.astimezone(), (*r.tags,)) for r in rows]
        assert found == [(p, data, at.astimezone(), tags) for p, data, at, tags in wanted]
    tasks = source.option("minPartitions", 7).load().rdd.getNumPartitions()
    assert tasks >= 7
