"""Streaming reads by Spark: whatever stops a query, its table holds each position once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import zlog

from .conftest import SECONDS, Pipeline, options_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def test_each_run_goes_on_where_the_last_one_ended(log: zlog.Log, pipeline: Pipeline) -> None:
    log.append_many([b"x"] * 30)
    pipeline.run(log)
    pipeline.run(log)
    assert pipeline.positions() == list(range(30))
    log.append_many([b"y"] * 30)
    pipeline.run(log)
    assert pipeline.positions() == list(range(60))


def test_limits_cut_the_batches_and_progress_tells_the_lag(
    log: zlog.Log, pipeline: Pipeline
) -> None:
    log.append_many([b"x"] * 25)
    query = pipeline.run(log, maxEntriesPerTrigger=10, cursor="table")
    assert pipeline.positions() == list(range(25))
    progress = [p for p in query.recentProgress if p.numInputRows]
    assert [p.numInputRows for p in progress] == [10, 10, 5]
    assert '"position": 25' in progress[0].sources[0].latestOffset
    assert log.cursor("table").position == 25


def test_a_query_from_the_latest_entry_on_misses_nothing_after_its_start(
    log: zlog.Log, pipeline: Pipeline
) -> None:
    log.append_many([b"old"] * 10)
    pipeline.run(log, startingPosition="latest")
    log.append_many([b"new"] * 10)
    pipeline.run(log, startingPosition="latest")
    assert pipeline.positions() == list(range(10, 20))


def test_a_batch_that_failed_half_way_is_written_once(
    log: zlog.Log, pipeline: Pipeline, tmp_path: Path
) -> None:
    """The first run's tasks fail after they have read; the second run does the same batch."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import LongType

    log.append_many([b"x"] * 40)
    flag = tmp_path / "repaired"

    @f.udf(LongType(), useArrow=False)
    def fails(position: int) -> int:
        if position == 21 and not flag.exists():
            raise RuntimeError("a task dies")
        return position

    def transform(table: DataFrame) -> DataFrame:
        return table.withColumn("position", fails("position"))

    with pytest.raises(Exception, match="a task dies"):
        pipeline.start(log, transform, cursor="table").awaitTermination(SECONDS)
    assert log.cursor("table").position == 0
    flag.touch()
    log.append_many([b"later"] * 10)
    assert pipeline.start(log, transform, cursor="table").awaitTermination(SECONDS)
    assert pipeline.positions() == list(range(50))
    assert log.cursor("table").position == 50


def test_a_batch_whose_commit_is_lost_is_not_written_again(
    log: zlog.Log, pipeline: Pipeline
) -> None:
    """The table has the batch, and the checkpoint does not know: Spark runs it once more."""
    log.append_many([b"x"] * 20)
    pipeline.run(log)
    commits = Path(pipeline.checkpoint) / "commits"
    newest = max((each for each in commits.iterdir() if each.name.isdecimal()), key=by_number)
    newest.unlink()
    (commits / f".{newest.name}.crc").unlink(missing_ok=True)
    log.append_many([b"later"] * 10)
    pipeline.run(log)
    assert pipeline.positions() == list(range(30))


def by_number(path: Path) -> int:
    return int(path.name)


def test_a_start_that_was_trimmed_meanwhile(log: zlog.Log, pipeline: Pipeline) -> None:
    log.append_many([b"x"] * 10)
    pipeline.run(log)
    log.append_many([b"x"] * 10)
    log.trim_to(15)
    with pytest.raises(Exception, match="trimmed below 15, and the query reads from 10"):
        pipeline.run(log)
    pipeline.run(log, failOnDataLoss="false")
    assert pipeline.positions() == [*range(10), *range(15, 20)]


def test_a_query_that_goes_on_by_itself_sees_what_is_appended(
    spark: SparkSession, log: zlog.Log
) -> None:
    source = spark.readStream.format("zlog").options(**options_of(log)).load()
    query = source.writeStream.format("memory").queryName("live").start()
    try:
        for count in (5, 10):
            log.append_many([b"x"] * 5)
            query.processAllAvailable()
            assert spark.table("live").count() == count
    finally:
        query.stop()
