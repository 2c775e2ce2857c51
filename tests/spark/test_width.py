"""The number of stripe objects changes while a log is read: no position is missed or doubled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import zlog
from zlog.spark._driver import StreamPlanner
from zlog.spark._options import SourceOptions

from .conftest import options_of
from .test_driver import span
from .test_read import rows, tasks
from .test_stream import Pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_a_batch_over_a_change_has_tasks_for_the_objects_of_both(
    log: zlog.Log, store: zlog.Store
) -> None:
    log.append_many([b"x"] * 10)
    planner = StreamPlanner(SourceOptions.parse(options_of(log), streaming=True))
    start = planner.initial()
    with zlog.Log.open(store, log.name) as other:
        other.reconfigure(width=3)
        other.append_many([b"x"] * 10)
    plan = planner.plan(planner.latest(start, None))
    assert span(plan) == (0, 20)
    objects = [(share.spacing.width, share.indexes) for task in plan for share in task]
    assert sorted(objects) == [(width, (index,)) for width in (3, 4) for index in range(width)]


def test_a_change_after_planning_changes_no_task(log: zlog.Log) -> None:
    log.append_many([b"x"] * 10)
    planned = tasks(log)
    log.reconfigure(width=7)
    log.append_many([b"y"] * 10)
    assert [row["position"] for row in rows(planned)] == list(range(10))
    assert [row["stripe"] for row in rows(tasks(log))] == [
        *(p // 2 % 4 for p in range(10)),
        *(p // 2 % 7 for p in range(10, 20)),
    ]


def test_a_trimmed_stripe_that_is_gone_is_a_loss_or_passed_over(log: zlog.Log) -> None:
    log.append_many([b"x"] * 10)
    lenient = tasks(log, failOnDataLoss="false")
    log.reconfigure(width=2)
    log.append_many([b"y"] * 10)
    log.trim_to(15)
    assert rows(lenient) == []
    assert [row["position"] for row in rows(tasks(log))] == list(range(15, 20))


def test_a_query_goes_on_over_changes(spark: SparkSession, log: zlog.Log, tmp_path: Path) -> None:
    pipeline = Pipeline(spark, tmp_path)
    log.append_many([b"x"] * 10)
    pipeline.run(log)
    for width in (7, 1):
        log.append_many([b"x"] * 10)
        log.reconfigure(width=width)
        log.append_many([b"x"] * 10)
    pipeline.run(log, maxEntriesPerTrigger=15, maxPartitions=3)
    assert pipeline.positions() == list(range(50))
