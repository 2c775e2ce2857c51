"""Gaps say what became of their positions: who filled them, when and why, and what was lost."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

import zlog
from zlog import Entry, Fill, FillReason, Gap, GapKind, Loss, LossReason
from zlog._base.codes import FillCode
from zlog._base.io import deadline_of
from zlog._io import drive

from ..support.logs import leave_hole
from .faulty import FaultyStore
from .planted import remove

UNITS = (1, 4)


def gaps_of(log: zlog.Log) -> list[Gap]:
    """Read the log as items and as columns, which tell the same. Nothing is filled."""
    gaps = [item for item in log.read_range(hole_timeout=None) if isinstance(item, Gap)]
    columns = log.read_columns(hole_timeout=None)
    assert [gap for window in columns for gap in window.gaps] == gaps
    return gaps


def test_fill_records_client_time_and_reason(sequenced: zlog.Log) -> None:
    before = datetime.now(timezone.utc) - timedelta(microseconds=1)
    asked = leave_hole(sequenced)
    sequenced.fill(asked)
    sequenced.append(b"x")
    waited = leave_hole(sequenced, 3)
    sequenced.append(b"y")
    with zlog.Log.open(sequenced.store, "orders") as reader:
        list(reader.read_range(hole_timeout=0.01))
        first, second = gaps_of(sequenced)
        assert first[:3] == (asked, asked + 1, GapKind.FILLED)
        assert second[:3] == (waited, waited + 3, GapKind.FILLED)
        for gap, log, why in (
            (first, sequenced, FillReason.ASKED),
            (second, reader, FillReason.READER_WAITED),
        ):
            assert isinstance(gap.detail, Fill)
            assert gap.detail.by == log.writer_id
            assert gap.detail.why is why
            assert before < gap.detail.at <= datetime.now(timezone.utc)
        assert reader.writer_id != sequenced.writer_id


def test_read_error_carries_gap_details(sequenced: zlog.Log) -> None:
    sequenced.fill(leave_hole(sequenced))
    sequenced.append(b"x")
    sequenced.trim(1)
    assert leave_hole(sequenced) == 2
    sequenced.append(b"y")
    filled, trimmed, _ = gaps_of(sequenced)
    by = sequenced.writer_id[:8]
    with pytest.raises(
        zlog.Invalidated, match=rf"position 0 .*\(by {by} at .*, because a client asked"
    ) as told:
        sequenced.read(0)
    assert told.value.gap == filled
    with pytest.raises(zlog.Invalidated, match=r"position 1 of log 'orders' was trimmed$") as told:
        sequenced.read(1)
    assert told.value.gap == trimmed
    with pytest.raises(zlog.NotWritten, match="position 2 "):
        sequenced.read(2)


def test_fills_of_same_client_and_reason_are_merged(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=3)
    other = zlog.Log.open(memory, "orders")
    assert leave_hole(log, 8) == 0
    log.fill(1)
    log.fill(0)
    other.fill(2)
    other.fill(3)
    client = other._client
    gave_up = client.reader.fill([4, 5], FillCode.WRITER_GAVE_UP, deadline_of(client.io, 10))
    assert drive(gave_up) is None
    log.trim(6)
    log.append(b"x")
    one, two, three, trimmed, open_ = gaps_of(log)
    assert [gap[:2] for gap in (one, two, three, trimmed, open_)] == [
        (0, 2), (2, 4), (4, 6), (6, 7), (7, 8),
    ]  # fmt: skip
    fills = [gap.detail for gap in (one, two, three) if isinstance(gap.detail, Fill)]
    assert [fill.by for fill in fills] == [log.writer_id, other.writer_id, other.writer_id]
    assert [fill.why for fill in fills] == [
        FillReason.ASKED, FillReason.ASKED, FillReason.WRITER_GAVE_UP,
    ]  # fmt: skip
    with pytest.raises(zlog.Invalidated) as told:
        log.read(1)
    assert told.value.gap is not None
    assert told.value.gap.detail == fills[0]  # the earliest, though not the first
    assert (trimmed.kind, trimmed.detail) == (GapKind.TRIMMED, None)
    assert (open_.kind, open_.detail) == (GapKind.UNWRITTEN, None)


def test_neighbouring_lost_positions_are_one_gap(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=3, stripe_unit=1)
    log.append_many([b"x"] * 6)
    names = [ref.name for ref in log.view.objects()]
    for ref in list(log.view.objects())[:2]:
        remove(log, ref)
    gone = Loss(LossReason.MISSING, (names[0], names[1]))
    assert gaps_of(log) == [Gap(0, 2, GapKind.LOST, gone), Gap(3, 5, GapKind.LOST, gone)]
    with pytest.raises(zlog.CorruptEntry, match=f"position 4 .* is lost .missing: {names[1]}"):
        log.read(4)


def test_gap_details_cost_no_read_without_gaps(memory: zlog.Store) -> None:
    """What a gap has to tell is asked for where there is one: one read more for each object."""
    log = zlog.Log.create(memory, "orders", width=2, stripe_unit=1)
    log.append_many([b"x"] * 20)
    reads: list[str] = []
    counting = FaultyStore(memory, lambda _, method: reads.append(method))
    reader = zlog.Log.open(counting, "orders")
    assert all(isinstance(item, Entry) for item in reader.read_range())
    assert reads.count("read") == 2
    assert leave_hole(log, 2) == 20
    log.fill(20)
    log.fill(21)
    reads.clear()
    assert [*reader.read_range()][-1].end == 22
    assert reads.count("read") == 4


@pytest.mark.usefixtures("small_windows")
def test_windows_after_fill_are_requested_once(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=1)
    for _ in range(20):
        log.append_many([b"x"] * 15)
        log.fill(leave_hole(log))
    reads: list[str] = []
    counting = FaultyStore(memory, lambda _, method: reads.append(method))
    reader = zlog.Log.open(counting, "orders")
    expected = [item.end for item in log.read_range()]
    assert [item.end for item in reader.read_range()] == expected
    assert reads.count("read") == 20 + 3  # the first, and two that were requested before it came
    reads.clear()
    gaps = [gap for window in reader.read_columns() for gap in window.gaps]
    assert gaps == [item for item in log.read_range() if isinstance(item, Gap)]
    assert reads.count("read") == 20 + 3


@pytest.mark.usefixtures("small_windows")
def test_gaps_are_merged_across_windows(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=3)
    assert leave_hole(log, 50) == 0
    for position in range(50):
        log.fill(position)
    (gap,) = gaps_of(log)  # it ends at the tail, where no window follows
    assert gap[:3] == (0, 50, GapKind.FILLED)
    leave_hole(log, 50)
    log.append(b"x")
    open_holes = Gap(50, 100, GapKind.UNWRITTEN)
    assert [*log.read_range(50, hole_timeout=None)] == [open_holes, log.read(100)]
    backwards = log.read_range(50, hole_timeout=None, reverse=True)
    assert [*backwards] == [log.read(100), open_holes]
    columns = [*log.read_columns(50, hole_timeout=None)]
    assert [gap for each in columns for gap in each.gaps] == [open_holes]
    seen_from_aside = zlog.Log.open(zlog.ReadOnlyStore(memory), "orders")
    assert next(seen_from_aside.follow(50, hole_timeout=0)) == open_holes
