"""What the driver answers Spark, without Spark: bounds, limits, restarts, trims, new logs."""

from __future__ import annotations

import json

import pytest

import zlog
from zlog.spark._driver import Planner
from zlog.spark._offset import LogOffset, Offset
from zlog.spark._options import SourceOptions
from zlog.spark._plan import Share
from zlog.spark._stream import StreamPlanner

from .conftest import options_of


def kept(offset: Offset) -> Offset:
    """Return an offset as Spark hands it in: from its JSON."""
    several = len(offset.logs) > 1
    return Offset.from_json(json.loads(json.dumps(offset.to_json(several=several))))


def only(offset: Offset) -> LogOffset:
    """Return the progress in the only log."""
    (found,) = offset.logs.values()
    return found


def planner(log: zlog.Log, **options: object) -> Planner:
    return Planner(SourceOptions.parse(options_of(log, **options)))


def stream(log: zlog.Log, **options: object) -> StreamPlanner:
    return StreamPlanner(SourceOptions.parse(options_of(log, **options), streaming=True))


def span(plan: list[tuple[Share, ...]]) -> tuple[int, int] | None:
    """Return what a plan reads, having checked that it reads each position once."""
    ranges = [r for task in plan for share in task for r in share.positions(0, 10**9)]
    positions = sorted(p for each in ranges for p in each)
    if not positions:
        return None
    assert positions == list(range(positions[0], positions[-1] + 1))
    return positions[0], positions[-1] + 1


def test_batch_reads_whole_log_or_given_range(log: zlog.Log) -> None:
    log.append_many([b"x"] * 20)
    assert span(planner(log).plan_batch()) == (0, 20)
    assert span(planner(log, startingPosition=5, endingPosition=9).plan_batch()) == (5, 9)
    assert span(planner(log, endingPosition=99).plan_batch()) == (0, 20)
    assert span(planner(log, startingPosition="latest").plan_batch()) is None
    with pytest.raises(zlog.BeyondTail, match="the tail of log 'orders', which is 20"):
        planner(log, startingPosition=21).plan_batch()
    with pytest.raises(zlog.BeyondTail):
        stream(log, startingPosition=21).initial()
    assert only(stream(log, startingPosition=20).initial()).position == 20


def rolled(store: zlog.Store, width: int, entry: bytes = b"x") -> zlog.Log:
    """Make a log of 50 stripes, more than a view names, of 24 entries each."""
    log = zlog.Log.create(store, "rolls", width=width, stripe_unit=1)
    for number in range(50):
        log.append_many([entry] * 24)
        log.reconfigure(width=width + number % 2)
    assert log.stat().stripes > len(log.view.stripes)
    return log


def test_archived_stripes_are_read(store: zlog.Store) -> None:
    log = rolled(store, width=1)
    assert span(planner(log).plan_batch()) == (0, 1200)
    assert span(planner(log, startingPosition=7, endingPosition=50).plan_batch()) == (7, 50)
    reader = stream(log)
    assert span(reader.plan(reader.latest(reader.initial(), None))) == (0, 1200)


def test_small_stripes_are_joined_into_tasks(store: zlog.Store) -> None:
    assert len(planner(rolled(store, width=2)).plan_batch()) == 3


def test_stripes_of_large_entries_stay_separate(
    store: zlog.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zlog.spark._driver.JOINED_BYTES_MAX", 100_000)
    log = rolled(store, width=1, entry=bytes(1000))
    tasks = planner(log).plan_batch()
    assert max(sum(len(share) for share in task) for task in tasks) <= 100
    assert 12 <= len(tasks) <= 20


def test_batch_across_width_change_reads_both_stripes(log: zlog.Log, store: zlog.Store) -> None:
    log.append_many([b"x"] * 10)
    reader = stream(log)
    start = reader.initial()
    with zlog.Log.open(store, log.name) as other:
        other.reconfigure(width=3)
        other.append_many([b"x"] * 10)
    plan = reader.plan(reader.latest(start, None))
    assert span(plan) == (0, 20)
    objects = [(share.striping.width, share.indexes) for task in plan for share in task]
    assert sorted(objects) == [(width, (index,)) for width in (3, 4) for index in range(width)]


def test_task_count_respects_options(log: zlog.Log) -> None:
    log.append_many([b"x"] * 1000)
    for options in ({"minPartitions": 9}, {"minPartitions": 9, "maxPartitions": 9}):
        tasks = planner(log, **options).plan_batch()
        assert len(tasks) == 9
        assert span(tasks) == (0, 1000)
    assert len(planner(log, minPartitions=3).plan_batch()) == 4
    assert len(planner(log, maxPartitions=3).plan_batch()) == 3


def test_batch_reads_time_range(log: zlog.Log) -> None:
    log.append_many([b"before"] * 3)
    first = log.append(b"in")
    log.append(b"in")
    last = log.append(b"after")
    times = {
        "startingTimestamp": log.read(first).timestamp.isoformat(),
        "endingTimestamp": log.read(last).timestamp.isoformat(),
    }
    assert span(planner(log, **times).plan_batch()) == (first, last)


def test_trimmed_start_is_an_error_by_default(log: zlog.Log) -> None:
    log.append_many([b"x"] * 20)
    log.trim_to(8)
    assert span(planner(log).plan_batch()) == (8, 20)
    for start in (0, 3):  # 0 is not the default: that is the earliest entry
        with pytest.raises(
            zlog.Invalidated, match=f"below 8, but the query has only read up to {start}"
        ):
            planner(log, startingPosition=start).plan_batch()
    assert span(planner(log, startingPosition=3, failOnDataLoss="false").plan_batch()) == (8, 20)


def test_stream_starts_at_given_position(log: zlog.Log) -> None:
    log.append_many([b"x"] * 10)
    reader = stream(log, startingPosition="latest")
    start = reader.initial()
    assert (only(start).position, only(start).since) == (10, 10)
    assert reader.latest(start, None) == start
    log.append_many([b"x"] * 5)
    end = reader.latest(start, None)
    assert (only(end).position, only(end).since) == (15, 10)
    assert span(reader.plan(end)) == (10, 15)
    assert reader.latest(end, None) is end
    assert only(reader.tail()).position == 15


def test_replayed_first_batch_matches_checkpoint(log: zlog.Log) -> None:
    """Spark asks for the initial offset again then, and the latest one is another by now."""
    log.append_many([b"x"] * 10)
    reader = stream(log, startingPosition="latest", cursor="query")
    start = reader.initial()
    log.append_many([b"x"] * 5)
    end = reader.latest(start, None)
    log.append_many([b"x"] * 3)
    again = stream(log, startingPosition="latest", cursor="query")
    for planner in (reader, again):
        assert only(planner.initial()).position == 18
        assert span(planner.plan(kept(end))) == (10, 15)
        assert log.cursor("query").position == 10


def test_limits_skip_trimmed_positions(log: zlog.Log) -> None:
    log.append_many([b"x"] * 20)
    reader = stream(log, failOnDataLoss="false")
    start = reader.initial()
    first = reader.latest(start, 6)
    assert (only(first).position, only(first).since) == (6, 0)
    log.trim_to(10)
    second = reader.latest(reader.latest(first, 4), 6)
    assert span(reader.plan(second)) == (10, 16)


def test_limits_count_trimmed_positions_as_gap_rows(log: zlog.Log) -> None:
    log.append_many([b"x"] * 20)
    reader = stream(log, failOnDataLoss="false", includeGaps="true")
    start = reader.initial()
    log.trim_to(10)
    end = kept(reader.latest(start, 6))
    assert span(reader.plan(end)) == (0, 6)
    assert span(reader.plan(kept(reader.latest(end, 6)))) == (6, 12)


def test_available_now_query_ends_at_initial_tail(log: zlog.Log) -> None:
    log.append_many([b"x"] * 10)
    reader = stream(log)
    start = reader.initial()
    reader.end_now()
    log.append_many([b"x"] * 10)
    first = reader.latest(start, 7)
    second = reader.latest(first, 7)
    assert (only(first).position, only(second).position) == (7, 10)
    assert reader.latest(second, 7) == second


def test_checkpoint_of_removed_log_is_refused(log: zlog.Log, store: zlog.Store) -> None:
    log.append_many([b"x"] * 10)
    reader = stream(log)
    end = reader.latest(reader.initial(), None)
    zlog.Log.remove(store, log.name)
    with zlog.Log.create(store, log.name) as new:
        new.append_many([b"y"] * 20)
        again = stream(new)
        with pytest.raises(zlog.ZlogError, match="belongs to a removed log 'orders'"):
            again.plan(end)
        with pytest.raises(zlog.LogNotFound, match="another log now has its name"):
            reader.latest(end, None)
        assert span(again.plan(again.latest(again.initial(), None))) == (0, 20)


def test_checkpoint_of_other_log_is_refused(log: zlog.Log, store: zlog.Store) -> None:
    log.append_many([b"x"] * 10)
    end = stream(log).initial()
    with zlog.Log.create(store, "invoices") as other:
        for use in (stream(other).plan, lambda start: stream(other).latest(start, None)):
            with pytest.raises(zlog.ZlogError, match="belongs to log 'orders', not to 'invoices'"):
                use(end)


def test_cursor_holds_start_and_follows_commits(log: zlog.Log) -> None:
    log.append_many([b"x"] * 10)
    reader = stream(log, cursor="table", startingPosition=2)
    start = reader.initial()
    with pytest.raises(zlog.HeldByCursor):
        log.trim_to(3)
    end = reader.latest(start, 5)
    reader.plan(end)
    assert log.cursor("table").position == 2
    assert only(reader.latest(end, None)).position == 10
    assert log.cursor("table").position == 7


def test_shared_cursor_ends_slower_query(log: zlog.Log) -> None:
    log.append_many([b"x"] * 10)
    slow, fast = stream(log, cursor="shared"), stream(log, cursor="shared")
    first = slow.latest(slow.initial(), 3)
    fast.latest(fast.latest(fast.initial(), None), None)
    assert log.cursor("shared").position == 10
    with pytest.raises(zlog.CursorAhead, match="is at 10, but this query is at 3") as raised:
        slow.latest(first, None)
    assert "zlog cursor rm orders shared" in raised.value.hint
    assert log.cursor("shared").position == 10


def test_new_query_resets_abandoned_cursor(log: zlog.Log) -> None:
    log.append_many([b"x"] * 10)
    log.trim_to(2)
    log.cursor("table", create=9)
    reader = stream(log, cursor="table", startingPosition=0, failOnDataLoss="false")
    start = reader.initial()
    assert log.cursor("table").position == 2
    assert span(reader.plan(reader.latest(start, None))) == (2, 10)


def test_stream_start_in_future_is_refused(log: zlog.Log) -> None:
    """It would have what is appended until then. Of a batch nothing is left, which is right."""
    with pytest.raises(ValueError, match="00:00 is in the future"):
        stream(log, startingTimestamp="2100-01-01T00:00:00Z").initial()
