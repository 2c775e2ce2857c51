"""Where an entry ends up when its position is taken, its epoch over, or its reply lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._base.sequencer import Grant, LogAddress
from zlog._io import drive
from zlog._native.completions import CompletionQueue

from ..support.local_sequencer import LocalSequencer
from ..support.logs import after_first_grant, data_of, new_epoch
from .faulty import FaultyStore, loses_first
from .planted import append_at


def append_ids(log: zlog.Log) -> dict[int, tuple[bytes, int]]:
    """Return writer and number of every entry in the log, by position."""
    written = [item.position for item in log.read_range() if isinstance(item, zlog.Entry)]
    return {position: append_at(log, position) for position in written}


def test_moved_entry_keeps_append_id(memory: zlog.Store) -> None:
    """The id belongs to the entry, so that an audit can tell an entry that stands twice."""
    log = zlog.Log.create(memory, "orders", width=2)
    other = zlog.Log.open(memory, "orders")

    def fill_two(position: int) -> None:
        other.fill(position)
        other.fill(position + 3)

    grants = after_first_grant(log, fill_two)
    assert log.append_many([b"0", b"1", b"2", b"3", b"4"]) == [5, 1, 2, 6, 4]
    assert grants == [5, 2]
    ids = append_ids(log)
    assert {writer for writer, _ in ids.values()} == {log._client.appender.writer}
    assert {position: number for position, (_, number) in ids.items()} == {
        5: 0,
        1: 1,
        2: 2,
        6: 3,
        4: 4,
    }


def test_handles_have_different_writer_ids(memory: zlog.Store) -> None:
    first = zlog.Log.create(memory, "orders", width=1)
    second = zlog.Log.open(memory, "orders")
    assert [first.append(b"same"), second.append(b"same")] == [0, 1]
    assert len(set(append_ids(first).values())) == 2


def test_grant_is_valid_only_in_its_epoch(
    plain: zlog.Store, sequencer: LocalSequencer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sequencer ahead of the client's view may be behind the view that is then read."""
    log = zlog.Log.create(plain, "orders", width=2)
    log.append(b"first")
    other = zlog.Log.open(plain, "orders")._client
    client = log._client
    link = client.io.sequencer(sequencer.address)
    inner = link.next
    asked: list[int] = []

    async def next_epoch(log: LogAddress, count: int, epoch: int, deadline: Deadline) -> Grant:
        asked.append(epoch)
        if len(asked) > 1:
            return await inner(log, count, epoch, deadline)
        drive(other.layout.change(lambda view: view, deadline))
        opened = await link.open(log, 0, deadline)
        drive(other.layout.change(lambda view: view, deadline))  # and that epoch is over, too
        return Grant(opened.epoch, 100)

    monkeypatch.setattr(link, "next", next_epoch)
    view, position = drive(client.positions.grant(1, client.deadline()))
    assert position == 1
    assert len(asked) > 1
    assert view == client.layout.view


@pytest.mark.parametrize("count", [1, 5])
def test_an_append_that_timed_out_keeps_its_positions(memory: zlog.Store, count: int) -> None:
    """The write may land later, so the entry has no other place until its caller says so."""
    zlog.Log.create(memory, "orders", width=1)
    log = zlog.Log.open(FaultyStore(memory, loses_first("write")), "orders")
    with pytest.raises(zlog.StoreTimeout) as caught:
        log.append_many([b"%d" % i for i in range(count)], timeout=0.2)
    assert caught.value.positions == (None,) * count
    assert log.tail() == count
    assert data_of(log.read_range()) == [b"%d" % i for i in range(count)]


class LayoutChanges(FaultyStore):
    """Sends the last call of several first, and has something done before each write but that."""

    def __init__(self, store: zlog.Store, *changes: Callable[[], object]) -> None:
        waiting = [lambda: None, *changes]

        def fault(_: int, method: str) -> None:
            if method == "write" and waiting:
                waiting.pop(0)()

        super().__init__(store, fault)

    def submit(
        self, queue: CompletionQueue, token: int, calls: Sequence[tuple[str, str, bytes]]
    ) -> None:
        for number, call in reversed([*enumerate(calls, token)]):
            super().submit(queue, number, [call])


@pytest.mark.parametrize("change", [new_epoch, lambda other: other.reconfigure(width=3)])
def test_layout_change_does_not_reorder_batch(
    memory: zlog.Store, change: Callable[[zlog.Log], object]
) -> None:
    """Refused entries below a written one keep their positions, also in an ended stripe."""
    entries = [b"%d" % number for number in range(9)]
    other = zlog.Log.create(memory, "orders", width=2, stripe_unit=1)
    log = zlog.Log.open(LayoutChanges(memory, lambda: change(other)), "orders")
    assert log.append_many(entries) == [*range(9)]
    assert data_of(other.read_range(hole_timeout=0)) == entries
    assert other.append(b"next") == 9


def test_entry_moves_when_position_filled_or_trimmed(
    memory: zlog.Store,
) -> None:
    other = zlog.Log.create(memory, "orders", width=2, stripe_unit=1)
    entries = [b"0", b"1", b"2", b"3"]

    def roll_and_fill() -> None:
        other.roll()
        other.fill(0)

    def trim() -> None:
        other.trim_to(other.view.live_stripe.start)  # which removes objects

    log = zlog.Log.open(LayoutChanges(memory, roll_and_fill), "orders")
    assert log.append_many(entries) == [4, 1, 2, 3]
    log = zlog.Log.open(LayoutChanges(memory, lambda: (other.roll(), trim())), "orders")
    assert log.append_many(entries) == [9, 6, 10, 8]
    log = zlog.Log.open(LayoutChanges(memory, other.roll, trim), "orders")
    assert log.append_many(entries) == [15, 12, 16, 14]
    assert [*log.check()] == []


@pytest.mark.parametrize("batch", [4, 5])
def test_refused_entry_is_not_written_after_read_only(memory: zlog.Store, batch: int) -> None:
    """Neither at the position that it keeps nor at another one."""
    other = zlog.Log.create(memory, "orders", width=2, stripe_unit=1)
    log = zlog.Log.open(LayoutChanges(memory, other.read_only), "orders")
    with pytest.raises(zlog.AppendRefused) as caught:
        log.append_many([b"%d" % number for number in range(batch)])
    assert caught.value.positions == (None, 1, None, 3, None)[:batch]
    assert data_of(other.read_range(hole_timeout=0)) == [b"1", b"3"]
