"""Holes: positions handed out and never written. Readers wait, then fill, and agree."""

from __future__ import annotations

import threading
import time

import pytest

import zlog
from zlog import Entry, Gap, GapKind
from zlog._io import BlockingIo, deadline_of, drive
from zlog._sequencer import LogAddress


def leave_hole(log: zlog.Log, count: int = 1) -> int:
    """Take positions and never write them, as an appender that dies; returns the first."""
    client = log._client  # noqa: SLF001
    _, position = drive(client.positions.grant(count, deadline_of(client.io, 10)))
    return position


@pytest.fixture
def quick(log: zlog.Log) -> zlog.Log:
    if log.store.sequencer() is None:
        pytest.skip("without a sequencer a position is handed out by writing it")
    return log


def test_a_range_fills_a_hole_after_waiting(quick: zlog.Log) -> None:
    quick.append(b"a")
    hole = leave_hole(quick, 2)
    quick.append(b"b")
    began = time.monotonic()
    items = list(quick.read_range(hole_timeout=0.2))
    assert time.monotonic() - began >= 0.2
    assert [item.position for item in items] == [0, hole, 3]
    assert items[1] == Gap(hole, hole + 2, GapKind.FILLED)
    with pytest.raises(zlog.Invalidated, match="filled"):
        quick.read(hole)


def test_a_hole_that_is_written_in_time_is_an_entry(quick: zlog.Log) -> None:
    """The writer is slow, not dead: its reader gets the entry."""
    client = quick._client  # noqa: SLF001
    granted = threading.Event()
    go_on = threading.Event()
    inner = client.positions.grant

    async def slow_grant(count, deadline):  # type: ignore[no-untyped-def]
        result = await inner(count, deadline)
        granted.set()
        assert go_on.wait(10)
        return result

    writer = zlog.Log.open(quick.store, "orders")
    writer._client.positions.grant = slow_grant  # type: ignore[method-assign]  # noqa: SLF001
    inner = type(client.positions).grant.__get__(writer._client.positions)  # noqa: SLF001
    thread = threading.Thread(target=lambda: writer.append(b"late"))
    thread.start()
    assert granted.wait(10)
    quick.append(b"next")
    threading.Timer(0.1, go_on.set).start()
    items = list(quick.read_range(hole_timeout=20))
    thread.join()
    assert [item.data for item in items if isinstance(item, Entry)] == [b"late", b"next"]


def test_a_reader_may_leave_holes_alone(quick: zlog.Log) -> None:
    hole = leave_hole(quick)
    quick.append(b"b")
    assert list(quick.read_range(hole_timeout=None))[0] == Gap(hole, hole + 1, GapKind.UNWRITTEN)
    with pytest.raises(zlog.NotWritten):
        quick.read(hole)
    quick.fill(hole)
    quick.fill(hole)
    assert list(quick.read_range(hole_timeout=None))[0] == Gap(hole, hole + 1, GapKind.FILLED)


def test_a_writer_whose_position_was_filled_goes_behind_its_successors(quick: zlog.Log) -> None:
    """The order within a batch is kept but for what a reader filled."""
    client = quick._client  # noqa: SLF001
    inner = client.positions.grant
    first = True

    async def grant_and_lose(count, deadline):  # type: ignore[no-untyped-def]
        nonlocal first
        view, position = await inner(count, deadline)
        if first:
            first = False
            other = zlog.Log.open(quick.store, "orders")
            other.fill(position + 1)
            other.close()
        return view, position

    client.positions.grant = grant_and_lose  # type: ignore[method-assign]
    assert quick.append_many([b"a", b"b", b"c"]) == [0, 3, 2]
    items = list(quick.read_range())
    assert [item.data for item in items if isinstance(item, Entry)] == [b"a", b"c", b"b"]


def test_readers_and_writers_agree_on_every_position(quick: zlog.Log) -> None:
    """Fillers race with writers at the tail: whatever wins, everybody sees the same."""
    store = quick.store
    acknowledged: dict[int, bytes] = {}
    stop = threading.Event()

    def write(name: int) -> None:
        with zlog.Log.open(store, "orders") as log:
            for i in range(60):
                data = b"%d.%d" % (name, i)
                acknowledged[log.append(data)] = data

    def fill() -> None:
        with zlog.Log.open(store, "orders") as log:
            while not stop.is_set():
                try:
                    log.fill(max(0, log.tail(checked=False) - 1))
                except (zlog.AlreadyWritten, zlog.BeyondTail):
                    pass

    filler = threading.Thread(target=fill)
    writers = [threading.Thread(target=write, args=(name,)) for name in range(4)]
    for thread in [filler, *writers]:
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    filler.join()
    views = [list(zlog.Log.open(store, "orders").read_range(hole_timeout=0)) for _ in range(2)]
    assert views[0] == views[1]
    assert {i.position: i.data for i in views[0] if isinstance(i, Entry)} == acknowledged
    assert len(acknowledged) == 240


def test_a_follower_waits_at_a_hole_that_it_may_not_fill(quick: zlog.Log) -> None:
    hole = leave_hole(quick)
    quick.append(b"b")
    follower = quick.follow(hole_timeout=None)
    timer = threading.Timer(0.2, lambda: quick.fill(hole))
    timer.start()
    assert next(follower) == Gap(hole, hole + 1, GapKind.FILLED)
    timer.join()


def test_a_grant_is_for_one_epoch(quick: zlog.Log) -> None:
    """A position granted in one epoch is never used in another (one layout)."""
    store = quick.store
    io = BlockingIo(store)
    address = LogAddress("", "", "orders", quick.view.log_id)
    sequencer = io.sequencer("store:")
    epoch = quick.view.epoch
    assert drive(sequencer.next(address, 1, epoch, deadline_of(io, 1))).position == 0
    with pytest.raises(zlog.StaleEpoch):
        drive(sequencer.next(address, 1, epoch + 1, deadline_of(io, 1)))
