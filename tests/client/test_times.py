"""Positions by time: exact while times don't fall, over gaps, and bounded in what it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlog

from ..support.logs import leave_hole
from .clocks import NOW, append_at
from .faulty import FaultyStore


def at(second: float) -> datetime:
    return datetime.fromtimestamp(NOW + second, timezone.utc)


def test_clock_before_1970_counts_as_1970(log: zlog.Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zlog.environment.World.wall_clock_us", lambda _: -1)
    assert log.append(b"x") == 0
    assert log.read(0).timestamp == datetime.fromtimestamp(0, timezone.utc)
    log.cursor("c", create=0)
    assert log.tail() == 1


def test_time_out_of_utc_range_is_refused(log: zlog.Log) -> None:
    west, east = timezone(timedelta(hours=-9)), timezone(timedelta(hours=9))
    for moment in (datetime(9999, 12, 31, 23, tzinfo=west), datetime(1, 1, 1, tzinfo=east)):
        with pytest.raises(ValueError, match="in UTC"):
            log.find_time(moment)


def test_find_time_in_empty_or_trimmed_log(log: zlog.Log) -> None:
    assert [log.find_time(0), log.earliest(), log.tail()] == [0, 0, 0]
    append_at(log, 0, 1, 2)
    log.trim_to(3)
    assert [log.find_time(0), log.earliest(), log.tail()] == [3, 3, 3]


def test_positions_without_entry_are_skipped(log: zlog.Log) -> None:
    """Also when nothing else is left; what was trimmed alone has no time either."""
    append_at(log, *range(200))
    for position in range(40, 160):
        log.trim(position)
    times = (0, 39, 40, 100, 159, 160, 199, 200)
    assert [log.find_time(at(t)) for t in times] == [0, 39, 160, 160, 160, 160, 199, 200]
    for position in (*range(40), *range(160, 200)):
        log.trim(position)
    assert log.find_time(at(100)) == 200


def test_find_time_does_not_wait_or_fill(memory: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders", width=4) as log:
        append_at(log, 0)
        leave_hole(log)
        append_at(log, 2)
        assert log.find_time(at(1)) == 2
        with pytest.raises(zlog.NotWritten):
            log.read(1)


def test_invalid_times_are_refused(log: zlog.Log) -> None:
    naive = datetime(2026, 11, 20)  # noqa: DTZ001
    for wrong in (naive, math.inf, math.nan, 1e30):
        with pytest.raises(ValueError, match="time"):
            log.find_time(wrong)
    for wrong in ("@5m", None, True):
        with pytest.raises(TypeError, match="a time must be a datetime or seconds"):
            log.find_time(wrong)  # type: ignore[arg-type]
    east = timezone(timedelta(hours=8))
    append_at(log, 0, 1)
    assert log.find_time(at(1).astimezone(east)) == 1


def check_crossing(times: Sequence[int], found: int, when: int) -> None:
    """The entry there is not older, and the one before it is."""
    assert found == len(times) or times[found] >= when
    assert found == 0 or times[found - 1] < when


@given(times=st.lists(st.integers(0, 12), max_size=24), when=st.integers(-1, 13))
def test_decreasing_times_give_a_position_that_crosses_the_time(
    times: list[int], when: int
) -> None:
    with zlog.connect("mem://") as store, zlog.Log.create(store, "orders", width=3) as log:
        append_at(log, *times)
        found = log.find_time(at(when))
        check_crossing(times, found, when)
        if all(a <= b for a, b in pairwise(times)):
            assert found == sum(time < when for time in times)


def test_search_needs_few_small_reads(memory: zlog.Store) -> None:
    counted = FaultyStore(memory, lambda *_: None)
    with zlog.Log.create(counted, "orders", width=4) as log:
        append_at(log, 0)
        log.append_many([bytes(50)] * 100_000)
        append_at(log, 100, 200)
        before = counted.operations
        found = [log.find_time(at(second)) for second in (0, 50, 150, 250)]
        assert found == [0, 100_001, 100_002, 100_003]
        assert counted.operations - before <= 4 * 40


def test_find_time_spans_many_stripes(memory: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders", width=2, stripe_records=2) as log:
        append_at(log, *range(200))
        assert log.stat().stripes > 32  # more than a view holds
        with zlog.Log.open(memory, "orders") as other:
            assert [other.find_time(at(second)) for second in (0, 1, 77, 150)] == [0, 1, 77, 150]
            other.trim_to(50)
            assert [other.find_time(at(second)) for second in (0, 49, 77, 250)] == [50, 50, 77, 200]
