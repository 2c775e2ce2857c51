"""Queries over a log that is lost, and that continue in its promoted mirror."""

from __future__ import annotations

import logging
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import zlog
from zlog.spark._offset import WrongCheckpoint

from ..support.logs import data_of
from ..support.programs import ZLOG
from .conftest import SECONDS, Pipeline, log_options
from .test_driver import kept, only, stream


@pytest.fixture
def other(tmp_path: Path) -> Iterator[zlog.Store]:
    with zlog.connect((tmp_path / "other").as_uri()) as opened:
        yield opened


def mirrored(log: zlog.Log, store: zlog.Store, name: str) -> zlog.Log:
    for _ in zlog.mirror_log(log, store, name, width=3):
        pass
    return zlog.Log.open(store, name)


@pytest.mark.parametrize("name", ["orders", "copy"])
def test_query_continues_where_the_logs_part(
    log: zlog.Log, other: zlog.Store, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    log.append_many([b"x"] * 20)
    planner = stream(log)
    middle = kept(planner.latest(planner.initial(), 8))
    mirror = mirrored(log, other, name)
    log.append_many([b"lost"] * 5)
    end = kept(planner.latest(middle, None))
    with pytest.raises(WrongCheckpoint) as raised:
        stream(mirror, continueOnMirror="true").plan(end)
    assert "zlog access promote" in raised.value.hint
    mirror.promote()
    mirror.append_many([b"own"] * 30)
    with pytest.raises(WrongCheckpoint, match="was promoted at position 20") as raised:
        stream(mirror).plan(end)
    assert "continueOnMirror" in raised.value.hint
    again = stream(mirror, continueOnMirror="true", cursor="query")
    plan = again.plan(end)
    assert {(share.start, share.end) for task in plan for share in task} == {(8, 20)}
    assert {share.striping.width for task in plan for share in task} == {3}
    with caplog.at_level(logging.WARNING):
        following = again.latest(end, None)
    assert "positions [20, 25) of log 'orders'" in caplog.text
    assert (only(following).since, only(following).position) == (20, 50)
    assert mirror.cursor("query").position == 20
    assert only(again.latest(middle, 5)).since == 8


def uncommit(checkpoint: str) -> None:
    """Have Spark repeat its last batch, as if it had died before it noted the batch's end."""
    commits = [each for each in (Path(checkpoint) / "commits").iterdir() if each.name.isdecimal()]
    last = max(commits, key=lambda each: int(each.name))
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    last.unlink()


def write(spark: SparkSession, lines: zlog.Log, log: zlog.Log, checkpoint: str) -> None:
    """Append the lines of one log to another."""
    source = spark.readStream.format("zlog").options(**log_options(lines)).load()
    query = (
        source.selectExpr("data")
        .writeStream.format("zlog")
        .options(**log_options(log))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(SECONDS)


def test_queries_survive_the_loss_of_the_store(
    spark: SparkSession, log: zlog.Log, other: zlog.Store, pipeline: Pipeline, tmp_path: Path
) -> None:
    lines = zlog.Log.create(other, "lines", width=2)
    checkpoint = str(tmp_path / "write")
    command = [ZLOG, "--store", log.store.url, "mirror", "orders", "--to", other.url, "--follow"]
    with subprocess.Popen(command) as copy:
        for first in (0, 100):
            lines.append_many([b"%d" % n for n in range(first, first + 100)])
            write(spark, lines, log, checkpoint)
            pipeline.run(log)
        end = time.monotonic() + SECONDS
        while "orders" not in zlog.Log.list(other) or (
            zlog.Log.open(other, "orders").tail() < log.tail()
        ):
            assert time.monotonic() < end
            time.sleep(0.1)
        copy.kill()
    lines.append_many([b"%d" % n for n in range(200, 300)])
    write(spark, lines, log, checkpoint)  # these are lost, but for this query
    log.append_many([b"lost"] * 3)
    pipeline.run(log)
    for each in (checkpoint, pipeline.checkpoint):
        uncommit(each)
    tail = log.tail()
    log.store.close()
    (tmp_path / "store").rename(tmp_path / "gone")
    mirror = zlog.Log.open(other, "orders")
    mirror.promote()
    part = mirror.tail()
    lines.append_many([b"%d" % n for n in range(300, 400)])
    write(spark, lines, mirror, checkpoint)
    pipeline.run(mirror, continueOnMirror=True)
    assert Counter(data_of(mirror.read_range())) == Counter(b"%d" % n for n in range(400))
    read = Counter(pipeline.positions())
    kept = [each.position for each in mirror.read_range(0, part) if isinstance(each, zlog.Entry)]
    assert [read[p] for p in kept] == [1] * len(kept)
    assert {*range(tail, mirror.tail())} <= read.keys()
    with zlog.connect((tmp_path / "gone").as_uri()) as gone:
        old = zlog.Log.open(gone, "orders")
        missing = data_of(old.read_range(mirror.view.common_end(old.view.log_id)))
    assert Counter(missing) == Counter([b"%d" % n for n in range(200, 300)] + [b"lost"] * 3)
