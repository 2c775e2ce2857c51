"""The same on a Ceph cluster: workers connect by themselves, and keep their connections."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

import zlog

from ..support.ceph import CephCluster, unavailable
from .conftest import options_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def url(ceph_cluster: CephCluster) -> str:
    """An empty place in a cluster, as any process of this machine can open it."""
    if importlib.util.find_spec("zlog._rados") is None:
        unavailable("zlog was built without librados")
    return ceph_cluster.url(namespace=f"spark-{uuid4().hex[:12]}")


@pytest.fixture
def log(url: str) -> Iterator[zlog.Log]:
    with zlog.connect(url) as store, zlog.Log.create(store, "orders", width=4) as opened:
        yield opened


def test_a_log_on_ceph_is_read_as_a_table_and_as_a_stream(
    spark: SparkSession, log: zlog.Log, url: str, tmp_path: Path
) -> None:
    data = [b"%d" % i * (i % 40) for i in range(2_000)]
    log.append_many(data)
    options = options_of(log, store=url)
    rows = spark.read.format("zlog").options(**options).load().orderBy("position").collect()
    assert [bytes(row.data) for row in rows] == data

    table = str(tmp_path / "table")
    for _ in range(2):
        source = spark.readStream.format("zlog").options(**options).load()
        query = (
            source.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(table)
        )
        assert query.awaitTermination(120)
        log.append_many([b"later"] * 100)
    found = spark.read.parquet(table).select("position").collect()
    assert sorted(row.position for row in found) == list(range(2_100))
