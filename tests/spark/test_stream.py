"""Streaming reads by Spark: whatever stops a query, its table holds each position once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import zlog
from zlog.spark._driver import StreamPlanner
from zlog.spark._options import SourceOptions

from .conftest import Pipeline, options_of
from .test_driver import span

if TYPE_CHECKING:
    pass


def test_limits_split_batches_and_progress_reports_lag(log: zlog.Log, pipeline: Pipeline) -> None:
    log.append_many([b"x"] * 25)
    query = pipeline.run(log, maxEntriesPerTrigger=10, cursor="table")
    assert pipeline.positions() == list(range(25))
    progress = [p for p in query.recentProgress if p.numInputRows]
    assert [p.numInputRows for p in progress] == [10, 10, 5]
    assert '"position": 25' in progress[0].sources[0].latestOffset
    assert log.cursor("table").position == 25


def test_batch_across_width_change_reads_both_stripes(log: zlog.Log, store: zlog.Store) -> None:
    log.append_many([b"x"] * 10)
    planner = StreamPlanner(SourceOptions.parse(options_of(log), streaming=True))
    start = planner.initial()
    with zlog.Log.open(store, log.name) as other:
        other.reconfigure(width=3)
        other.append_many([b"x"] * 10)
    plan = planner.plan(planner.latest(start, None))
    assert span(plan) == (0, 20)
    objects = [(share.striping.width, share.indexes) for task in plan for share in task]
    assert sorted(objects) == [(width, (index,)) for width in (3, 4) for index in range(width)]
