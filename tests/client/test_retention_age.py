"""Retention by age: nothing younger than the limit is trimmed, with clocks as they like."""

from __future__ import annotations

import json
import logging
import time

import pytest

import zlog
from zlog import Retention, RetentionReport
from zlog._base.codes import COUNT_RECORDS_MAX, RETENTION_BYTES_MAX
from zlog._native import messages
from zlog._trim.age import Mark, Progress, Watch, _Base
from zlog.environment import SteadyTime

from ..support.logs import leave_hole
from . import planted
from .clocks import append_at, set_clocks
from .faulty import FaultyStore, at_method
from .transfers import mirrored

DAY = 86400.0
YEAR = 365 * DAY


def round_at(
    log: zlog.Log, second: float, *, wall: float | None = None, machine: str = "one"
) -> int:
    set_clocks(log, second, wall=wall, machine=machine)
    return log.apply_retention()


def test_age_counts_from_first_retention_round(log: zlog.Log) -> None:
    append_at(log, 0, 1, 2)
    log.set_retention(Retention(age=100.0))
    assert log.retention_report() == RetentionReport(0.0, "")
    assert [round_at(log, second) for second in (1000, 1099)] == [0, 0]
    assert log.retention_report() == RetentionReport(99.0, "")
    assert round_at(log, 1100) == 3


def test_lower_of_two_ages_applies(log: zlog.Log) -> None:
    log.set_retention(Retention(age=100.0, compact_after=1000.0))
    for second in (0, 60):
        append_at(log, second)
        assert round_at(log, second) == 0
    assert [round_at(log, second) for second in (100, 160)] == [1, 2]


def test_clock_jump_prevents_trim_by_age(log: zlog.Log, caplog: pytest.LogCaptureFixture) -> None:
    log.set_retention(Retention(age=7 * DAY))
    append_at(log, *range(20))
    assert round_at(log, 60) == 0
    with caplog.at_level(logging.WARNING):
        assert round_at(log, 120, wall=10 * YEAR) == 0
    assert (
        "clocks disagree: the clock of the machine that enforces retention jumped from"
        in caplog.text
    )
    assert "so nothing was trimmed by age" in caplog.text
    assert round_at(log, 180) == 0
    assert [round_at(log, 240), log.retention_report().doubt] == [0, ""]
    assert round_at(log, 8 * DAY, wall=-YEAR) == 0
    assert "jumped" in log.retention_report().doubt


@pytest.mark.parametrize(
    ("wrong", "when"),
    [(-2 * 3600.0, "2027-01-15 06:00:10 UTC"), (2 * 3600.0, "2027-01-15 10:00:10 UTC")],
)
def test_a_wrong_clock_of_a_writer_is_reported_and_delays_nothing(
    log: zlog.Log, wrong: float, when: str
) -> None:
    log.set_retention(Retention(age=30.0))
    append_at(log, 0)
    assert round_at(log, 1) == 0
    for second in range(10, 100, 10):
        append_at(log, second)
        set_clocks(log, second, wall=second + wrong)
        position = log.append(b"of a clock that is wrong")
        first = round_at(log, second + 1)
        doubt = log.retention_report().doubt
        assert doubt.startswith(f"the writer's clock at position {position} showed")
        assert second > 10 or when in doubt
        assert first <= max(0, 2 * ((second - 29) // 10) + 1)
    assert first > 5
    assert round_at(log, 100) >= first
    assert log.retention_report().doubt == ""  # no entry of that writer is new


def test_the_skew_between_clocks_is_a_setting(log: zlog.Log) -> None:
    log.set_retention(Retention(age=30.0, skew=3 * 3600.0))
    append_at(log, 0)
    assert round_at(log, 1) == 0
    set_clocks(log, 10, wall=2 * 3600)
    log.append(b"of a clock that is wrong")
    assert round_at(log, 60) == 1
    log.set_retention(Retention(age=30.0))
    assert "retention_skew_s" not in log.view.options


def test_blocking_hole_is_filled_eventually(sequenced: zlog.Log) -> None:
    log = sequenced
    log.set_retention(Retention(age=1000.0))
    append_at(log, 0)
    hole = leave_hole(log, 5)
    append_at(log, 1, 2)
    assert [round_at(log, second) for second in (2, 3)] == [0, 0]
    with pytest.raises(zlog.NotWritten):
        log.read(hole)
    assert round_at(log, 12) == 0  # in the way for a 128th of the limit
    assert [item.kind for item in log.read_range(hole, hole + 1)] == [zlog.GapKind.FILLED]
    assert round_at(log, 1012) == hole + 7


def test_cursors_trims_and_damage_are_respected(log: zlog.Log) -> None:
    log.set_retention(Retention(age=10.0))
    append_at(log, *range(10))
    log.trim(4)
    slow = log.cursor("slow", create=6)
    assert round_at(log, 10) == 0
    assert round_at(log, 21) == 6
    slow.remove()
    log.trim_to(8)
    assert round_at(log, 22) == 10
    append_at(log, 23)
    planted.remove(log, log.view.object_of(10))
    assert round_at(log, 24) == 10
    assert log.apply_retention() == 10


def test_entries_appended_during_a_round_keep_their_age(memory: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders", width=1) as log:
        log.set_retention(Retention(age=100.0))
        append_at(log, 0)

        def come() -> None:
            append_at(log, 50)
            set_clocks(other, 50)

        assert round_at(log, 1) == 0
        with zlog.Log.open(FaultyStore(memory, at_method("stat", come)), "orders") as other:
            assert round_at(other, 10) == 0
        assert round_at(log, 149) == 1
        assert round_at(log, 150) == 2


def test_age_limit_applies_to_copied_mirror_entries(memory: zlog.Store) -> None:
    """Its entries have the times of their source; what is above its floor is no reader's yet."""
    with zlog.Log.create(memory, "orders", width=2) as log, zlog.connect("mem://") as target:
        append_at(log, *range(10))
        mirrored(log, target, "copy")
        with zlog.Log.open(target, "copy") as copy:
            copy.set_retention(Retention(age=100.0, entries=12))
            assert round_at(copy, YEAR) == 0
            append_at(log, *range(10, 20))
            mirrored(log, target, "copy")
            for position in range(20, 40):
                planted.write(copy, position, b"w" * 16, position)
            assert round_at(copy, YEAR + 50) == 8
            assert copy.retention_report().doubt == ""
            assert [round_at(copy, YEAR + second) for second in (149, 150, 500)] == [10, 20, 20]


def test_concurrent_rounds_are_recorded_once(memory: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders", width=2) as log:
        log.set_retention(Retention(age=10.0))
        append_at(log, 0)
        between = FaultyStore(memory, at_method("retention_write", lambda: round_at(log, 5)))
        with zlog.Log.open(between, "orders") as other:
            assert round_at(other, 1) == 0
        assert round_at(log, 14) == 0
        assert round_at(log, 15) == 1


def test_long_log_is_scanned_in_several_rounds(memory: zlog.Store) -> None:
    """A look takes half the time at most."""
    with zlog.Log.create(memory, "orders", width=1) as log:
        for _ in range(COUNT_RECORDS_MAX + 100):
            log.append(b"x")
        log.set_retention(Retention(age=10.0))
        late = [0.0]
        slow = FaultyStore(memory, at_method("count", lambda: late.append(20.0)))
        with zlog.Log.open(slow, "orders", timeout=30) as other:
            other._client.io.monotonic = lambda: time.monotonic() + late[-1]  # type: ignore[method-assign]
            assert round_at(other, 0) == 0
        assert round_at(log, 8) == 0
        assert round_at(log, 10) == COUNT_RECORDS_MAX
        assert round_at(log, 18) == COUNT_RECORDS_MAX + 100


def test_an_invalid_state_begins_again(log: zlog.Log) -> None:
    log.set_retention(Retention(age=10.0))
    append_at(log, 0)
    known = Watch(
        3, [Mark(1, 2)], "one", 5, 6, _Base("one", 7, 8), "why", compacted=Progress(3, 5, 1)
    )
    assert Watch.decode(known.encode()) == known
    # A version that does not know compaction takes a state with that field for an invalid one.
    assert b"compacted" not in Watch(settled=5).encode()
    stored = json.loads(known.encode())
    wrong: list[tuple[str, object]] = [
        *(("settled", value) for value in ("3", 3.5, True, None)),
        *(("marks", value) for value in (3, [1], [[1]], [["a", 2]], [[1, 2, 3]])),
        *(("base", value) for value in ([1, 7, 8], ["one", 7], ["one", 7, "8"], 3)),
        *(("clock", None), ("us", "5"), ("watched", None), ("doubt", 3), ("further", 1)),
        *(("compacted", value) for value in ([1, 2, "x"], None, [1, 2, 3, 4])),
    ]
    states = [json.dumps({**stored, field: value}).encode() for field, value in wrong]
    for state in (b"", b"[]", b'{"settled": 3}', b"\xff", b"null", *states):
        assert Watch.decode(state) == Watch(), state


def test_damaged_retention_state_is_reset(memory: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders", width=2) as log:
        log.set_retention(Retention(age=10.0))
        append_at(log, 0)
        assert round_at(log, 1) == 0
        planted.flip(memory, "zlog.orders.head", b'"settled":1', b'"settled":2')
        assert [round_at(log, second) for second in (100, 109, 110)] == [0, 0, 1]


def test_retention_state_stays_small(memory: zlog.Store) -> None:
    """However limits change, and machines."""
    with zlog.Log.create(memory, "orders", width=1) as log:
        for number in range(400):
            if number % 100 == 0:
                log.set_retention(Retention(age=(100.0, YEAR, 200.0, DAY)[number // 100]))
            log.append(b"x")
            machine = str(number % 11 if number > 300 else 0)
            round_at(log, 20.0 * number, machine=machine * 32)
            request = messages.retention_read(log.view.log_id)
            reply = memory.execute("zlog.orders.head", "retention_read", request)[1]
            state = messages.retention_read_reply(reply).state
            kept = Watch.decode(state)
            assert len(kept.marks) <= 20, number
    marks = [Mark(1 << 62, 1 << 52)] * 161
    full = Watch(1 << 62, marks, kept.clock, 1 << 53, 1 << 53, kept.base, "x" * 300)
    full.note(1 << 53, SteadyTime("0" * 32, 1 << 53), 3e9)
    assert len(full.encode()) <= RETENTION_BYTES_MAX
