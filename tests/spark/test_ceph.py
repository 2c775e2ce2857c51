"""The same on a Ceph cluster: workers connect by themselves, and keep their connections."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

import zlog
from zlog.spark._handles import LogRef

from ..support.ceph import ClusterSpec
from .conftest import Pipeline, log_options, options_of, secrets_of


@pytest.fixture
def log(ceph_url: str) -> Iterator[zlog.Log]:
    with (
        zlog.connect(ceph_url) as store,
        zlog.Log.create(store, "orders", width=4, stripe_unit=2) as opened,
    ):
        yield opened


@pytest.mark.parametrize(
    "ceph_cluster",
    [ClusterSpec(), pytest.param(ClusterSpec(with_class=False), marks=pytest.mark.long)],
    indirect=True,
)
def test_log_on_ceph_is_table_and_stream(
    spark: SparkSession, log: zlog.Log, pipeline: Pipeline
) -> None:
    data = [b"%d" % i * (i % 40) for i in range(2_000)]
    log.append_many(data)
    options = log_options(log)
    rows = spark.read.format("zlog").options(**options).load().orderBy("position").collect()
    assert [bytes(row.data) for row in rows] == data
    for _ in range(2):
        pipeline.run(log)
        log.append_many([b"later"] * 100)
    assert pipeline.positions() == list(range(2_100))
    written = spark.createDataFrame([(b"written",)], ["data"])
    written.write.format("zlog").options(**options).mode("append").save()
    assert log.read(2_200).data == b"written"


def test_secrets_never_appear_in_plans_or_checkpoints(
    spark: SparkSession,
    log: zlog.Log,
    ceph_url: str,
    pipeline: Pipeline,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The URL says where the keyring is, never what is in it."""
    log.append_many([b"x"] * 10)
    options = options_of(log)
    spark.read.format("zlog").options(**options).load().explain(extended=True)
    query = pipeline.run(log)
    query.explain(extended=True)
    told = capsys.readouterr().out + "".join(each.json for each in query.recentProgress)
    for file in Path(pipeline.checkpoint).rglob("*"):
        told += file.read_text(errors="replace") if file.is_file() else ""
    for each in ("Physical Plan", "StreamingDataSourceV2", '"numInputRows"', '{"position": 10'):
        assert each in told
    assert not [key for key in secrets_of(ceph_url) if key in told]


@pytest.mark.long
def test_worker_keeps_its_connection(spark: SparkSession, log: zlog.Log, ceph_url: str) -> None:
    """Queries one after the other make no more sessions with the cluster than there are workers."""
    ref = LogRef(ceph_url, log.name)

    class Reader(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            return [InputPartition(number) for number in range(4)]

        def read(self, partition: InputPartition) -> Iterator[tuple[int, int, int]]:
            handle = ref.open()
            yield os.getpid(), id(handle), id(handle.store)

    class Handles(DataSource):
        @classmethod
        def name(cls) -> str:
            return "handles"

        def schema(self) -> str:
            return "process long, log long, store long"

        def reader(self, schema: StructType) -> Reader:
            return Reader()

    spark.dataSource.register(Handles)
    seen = [row for _ in range(4) for row in spark.read.format("handles").load().collect()]
    assert len(seen) == 16
    assert len(set(seen)) == len({row.process for row in seen}) <= 4
