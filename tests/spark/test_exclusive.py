"""Spark reads exclusive logs as any other, and its sink is refused by them in words."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import zlog

from ..support.logs import data_of
from .conftest import Pipeline, log_options


@pytest.mark.long
def test_stream_follows_successive_writers(log: zlog.Log, pipeline: Pipeline) -> None:
    log.append_many([b"shared"] * 5)
    pipeline.run(log)
    for name in ("ann", "bob"):
        with log.writer(name) as writer:
            writer.append_many([b"x"] * 20)
        pipeline.run(log)
    log.read_only()
    pipeline.run(log)
    assert pipeline.positions() == list(range(45))


def test_batch_write_to_exclusive_log_names_writer(spark: SparkSession, log: zlog.Log) -> None:
    # In one partition: another task of a job that failed may append after the job's error.
    table = spark.range(100).selectExpr("cast(id as string) as line").coalesce(1)
    write = table.write.format("zlog").options(**log_options(log)).mode("append")
    with (
        log.writer("ann") as ann,
        pytest.raises(Exception, match="is exclusive to its writer, ann") as raised,
    ):
        write.save()
    assert "zlog access fence orders" in str(raised.value)
    assert ann.confirmed == 0
    log.read_only()
    with pytest.raises(Exception, match="'orders' is read-only"):
        write.save()
    log.writable()
    write.save()
    assert len(data_of(log.read_range())) == 100
