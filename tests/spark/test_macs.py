"""Spark reads and writes logs with MACs: the key's path travels, and the key does not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import zlog

from ..client import planted
from ..support.logs import data_of
from .conftest import Pipeline, log_options, options_of


@pytest.mark.long
def test_key_is_read_on_workers(
    spark: SparkSession,
    store: zlog.Store,
    pipeline: Pipeline,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    key = os.urandom(16).hex().encode()
    path = tmp_path / "the-key"
    path.write_bytes(key)
    with zlog.Log.create(store, "signed", width=2, stripe_unit=1, mac_key=path) as log:
        options = {**log_options(log), "macKeyFile": str(path)}
        lines = spark.range(40).selectExpr("cast(id as string) as line")
        lines.write.format("zlog").options(**options).mode("append").save()
        assert sorted(map(int, data_of(log.read_range()))) == [*range(40)]
        table = spark.read.format("zlog").options(**options).load()
        assert {int(row.data) for row in table.collect()} == {*range(40)}
        table.explain(extended=True)
        query = pipeline.run(log, macKeyFile=path)
        query.explain(extended=True)
        assert sorted(pipeline.positions()) == [*range(40)]
        told = capsys.readouterr().out
        for file in Path(pipeline.checkpoint).rglob("*"):
            told += file.read_text(errors="replace") if file.is_file() else ""
        assert "Physical Plan" in told
        assert key.decode() not in told
        with pytest.raises(Exception, match=r"no key was given\nHint: Set the option macKeyFile"):
            spark.read.format("zlog").options(**options_of(log)).load().collect()
        ref = log.view.object_of(0)
        planted.remake(log, ref, epoch=log.view.epoch)
        for position in ref.positions(0, 40):
            planted.write(log, position, b"the store's own.", position, b"forged")
        with pytest.raises(Exception, match=r"(?s)log's key.*\nHint: .*`zlog check signed`"):
            table.collect()
        options |= {"failOnDataLoss": "false", "includeGaps": "true"}
        table = spark.read.format("zlog").options(**options).load()
        states = {row.state: row["count"] for row in table.groupBy("state").count().collect()}
        assert states == {"written": 20, "forged": 20}
