"""The tail: above everything acknowledged, never going back, under any sequencer or none."""

from __future__ import annotations

import pytest

import zlog
from zlog._base.codes import Code
from zlog._base.io import deadline_of
from zlog._io import BlockingIo, drive
from zlog._layout.views import Change, change_view

from ..support.local_sequencer import LocalSequencer
from ..support.logs import leave_hole, write_at
from .faulty import FaultyStore, WithoutSequencer, at_method

WIDTH = 3


@pytest.fixture
def log(memory: zlog.Store) -> zlog.Log:
    """A log with three entries, whose positions the store's own sequencer hands out."""
    log = zlog.Log.create(memory, "orders", width=WIDTH)
    log.append_many([b"a", b"b", b"c"])
    return log


def change(store: zlog.Store, sequencer: str | None = None) -> Change:
    """Bring in a new view; without a sequencer if that is empty."""
    from dataclasses import replace

    def edit(view: zlog.View) -> zlog.View:
        return view if sequencer is None else replace(view, sequencer=sequencer)

    io = BlockingIo(store)
    changed = drive(change_view(io, "orders", edit, deadline_of(io, 10)))
    assert isinstance(changed, Change)
    return changed


@pytest.mark.parametrize("number", range(WIDTH))
def test_new_epoch_starts_above_writes_during_seal(
    memory: zlog.Store, log: zlog.Log, number: int
) -> None:
    """Each object's highest position counts as of its own seal, not as of an earlier look."""
    striping = log.view.live_stripe.striping
    first = leave_hole(log, WIDTH * striping.stripe_unit)
    landed: list[int] = []

    def write_what_is_not_sealed_yet() -> None:
        for part in striping.by_object(first, first + WIDTH * striping.stripe_unit):
            if write_at(log, part.start) == Code.OK:
                landed.append(part.start)

    hooked = FaultyStore(memory, at_method("seal", write_what_is_not_sealed_yet, number + 1))
    changed = change(hooked)
    assert len(landed) == WIDTH - number
    assert changed.tail == max(landed) + 1
    assert log.append(b"next") == changed.tail


def test_new_epoch_starts_above_returned_tails(memory: zlog.Store, log: zlog.Log) -> None:
    leave_hole(log, 10)
    assert log.tail() == 13
    assert change(memory).tail == 13
    assert log.append(b"next") == 13


def test_tail_without_sequencer_covers_earlier_tails(memory: zlog.Store, log: zlog.Log) -> None:
    leave_hole(log, 10)
    assert log.tail() == 13
    change(memory, sequencer="")
    slow = zlog.Log.open(WithoutSequencer(memory), "orders")
    assert slow.tail() == 13
    assert slow.append(b"next") == 13
    assert slow.tail() == 14


def test_tail_of_ended_epoch_is_not_returned(plain: zlog.Store, sequencer: LocalSequencer) -> None:
    """A sequencer that was replaced and lives on answers what is long outdated."""
    reader = zlog.Log.create(plain, "orders", width=WIDTH)
    reader.append(b"a")
    assert reader.view.sequencer == sequencer.address
    sequencer.withdraw()
    change(plain, sequencer="")
    writer = zlog.Log.open(plain, "orders")
    assert writer.append_many([b"b", b"c"]) == [1, 2]
    assert reader.view.sequencer == sequencer.address
    assert reader.tail(checked=False) == 1
    assert reader.tail() == 3


def test_tail_is_not_recorded_after_newer_epoch(memory: zlog.Store, log: zlog.Log) -> None:
    """The next epoch may have begun below it: the caller gets that one's tail instead."""
    leave_hole(log, 10)
    changed: list[Change] = []
    hooked = FaultyStore(memory, at_method("tail_raise", lambda: changed.append(change(memory))))
    assert zlog.Log.open(hooked, "orders").tail() == 3
    assert changed[0].tail == 3


def test_read_below_recorded_tail_skips_tail_query(memory: zlog.Store, log: zlog.Log) -> None:
    end = log.append_many([b"a", b"b", b"c"])[-1] + 1
    assert log.tail() == end
    log.append(b"d")
    asked: list[str] = []

    def note(_: int, method: str) -> None:
        asked.append(method)

    with zlog.Log.open(FaultyStore(memory, note), "orders") as reader:
        asked.clear()
        assert [len(columns) for columns in reader.read_columns(end - 2, end)] == [2]
        assert {*asked} == {"read"}
        assert [entry.position for entry in reader.read_range(end - 1, end + 9)] == [end - 1, end]
        assert "tail_raise" in asked


def test_tail_query_tolerates_concurrent_trim(memory: zlog.Store) -> None:
    """The tail was 0: objects that are gone are passed over, and these had all there was."""
    beside = WithoutSequencer(memory)
    other = zlog.Log.create(beside, "orders", width=2)
    positions = other.append_many([b"entry"] * 10)

    def overtake() -> None:
        other.reconfigure(width=4)
        positions.append(other.append(b"in the new stripe"))
        other.trim_to(positions[-1])

    overtaken = WithoutSequencer(memory, at_method("max_position", overtake))
    with zlog.Log.open(overtaken, "orders") as log:
        assert log.tail() == positions[-1] + 1 == 11
    other.close()
