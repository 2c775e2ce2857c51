"""Holes: positions handed out and never written. Readers wait, then fill, and agree."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

import zlog
import zlog.aio
from zlog import Entry, Gap, GapKind

from ..support.logs import after_first_grant, data_of, leave_hole
from .faulty import FaultyStore, at_method

UNITS = (1, 4)


def test_range_read_fills_hole_after_timeout(sequenced: zlog.Log) -> None:
    sequenced.append(b"a")
    hole = leave_hole(sequenced, 2)
    sequenced.append(b"b")
    began = time.monotonic()
    items = list(sequenced.read_range(hole_timeout=0.2))
    assert time.monotonic() - began >= 0.2
    assert [item.position for item in items] == [0, hole, 3]
    assert items[1][:3] == (hole, hole + 2, GapKind.FILLED)
    with pytest.raises(zlog.Invalidated, match="filled"):
        sequenced.read(hole)


def test_hole_written_in_time_is_entry(sequenced: zlog.Log) -> None:
    """The writer is slow, not dead: its reader gets the entry."""
    writer = zlog.Log.open(sequenced.store, "orders")
    granted, go_on = threading.Event(), threading.Event()

    def pause(_: int) -> None:
        granted.set()
        assert go_on.wait(10)

    after_first_grant(writer, pause)
    thread = threading.Thread(target=lambda: writer.append(b"late"))
    thread.start()
    assert granted.wait(10)
    sequenced.append(b"next")
    threading.Timer(0.1, go_on.set).start()
    assert data_of(sequenced.read_range(hole_timeout=20)) == [b"late", b"next"]
    thread.join()


def test_reader_may_leave_holes_unfilled(sequenced: zlog.Log) -> None:
    hole = leave_hole(sequenced)
    sequenced.append(b"b")
    assert next(iter(sequenced.read_range(hole_timeout=None))) == Gap(
        hole, hole + 1, GapKind.UNWRITTEN
    )
    with pytest.raises(zlog.NotWritten):
        sequenced.read(hole)
    sequenced.fill(hole)
    sequenced.fill(hole)
    (gap, _) = sequenced.read_range(hole_timeout=None)
    assert gap[:3] == (hole, hole + 1, GapKind.FILLED)


def test_fill_accepts_entry_trimmed_concurrently(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders")
    log.append_many([b"a", b"b"])
    trims = at_method("read", lambda: log.trim(0))
    other = zlog.Log.open(FaultyStore(memory, trims), "orders")
    other.fill(0)
    with pytest.raises(
        zlog.AlreadyWritten, match="position 1 of log 'orders' already holds an entry"
    ):
        other.fill(1)


def test_hole_trimmed_concurrently_is_trimmed(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=2, stripe_unit=1)
    hole = leave_hole(log)
    log.append(b"b")
    trims = at_method("read", lambda: log.trim_to(2), number=2)  # after the hole was read
    other = zlog.Log.open(FaultyStore(memory, trims), "orders")
    assert [*other.read_range(hole_timeout=None)] == [Gap(hole, 2, GapKind.TRIMMED)]


def test_follower_without_timeout_waits_at_hole(sequenced: zlog.Log) -> None:
    hole = leave_hole(sequenced)
    sequenced.append(b"b")
    follower = sequenced.follow(hole_timeout=None)
    timer = threading.Timer(0.2, lambda: sequenced.fill(hole))
    timer.start()
    assert next(follower)[:3] == (hole, hole + 1, GapKind.FILLED)
    timer.join()


READERS: dict[str, Callable[[zlog.Log], Iterator[zlog.Entry | Gap]]] = {
    "range": lambda log: log.read_range(hole_timeout=5),
    "follow": lambda log: log.follow(hole_timeout=5),
    "range by tag": lambda log: log.read_range(hole_timeout=5, tags=["t"]),
    "follow by tag": lambda log: log.follow(hole_timeout=5, tags=["t"]),
    "reverse": lambda log: log.read_range(hole_timeout=5, reverse=True),
    "reverse by tag": lambda log: log.read_range(hole_timeout=5, reverse=True, tags=["t"]),
}


def log_with_two_holes(memory: zlog.Store, stripe_unit: int) -> tuple[zlog.Log, list[int]]:
    """Return a log in which all has the tag, and positions 3 and 6 of 0 to 9 are unwritten."""
    log = zlog.Log.create(memory, "orders", width=2, stripe_unit=stripe_unit)
    log.append_many([b"0", b"1", b"2"], tags=["t"])
    (first,) = log.reserve()
    log.append_many([b"4", b"5"], tags=["t"])
    (second,) = log.reserve()
    log.append_many([b"7", b"8", b"9"], tags=["t"])
    return log, [first, second]


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_entries_before_hole_are_not_delayed(
    memory: zlog.Store, read: Callable[[zlog.Log], Iterator[zlog.Entry | Gap]], stripe_unit: int
) -> None:
    """Neither for the first hole nor, once that is written, for the second."""
    log, holes = log_with_two_holes(memory, stripe_unit)
    expected = [b"%d" % position for position in range(10)]
    found: list[bytes] = []
    for item in itertools.islice(read(zlog.Log.open(memory, "orders")), 10):
        assert isinstance(item, Entry)
        found.append(item.data)
        for hole in [hole for hole in holes if abs(hole - item.position) == 1]:
            holes.remove(hole)
            log.write(hole, b"%d" % hole, tags=["t"])
    assert found in (expected, expected[::-1])


@pytest.mark.parametrize(
    ("indexes", "parts"),
    [(None, ([0, 1, 2], [3, 4, 5], [6, 7, 8, 9])), ([1], ([1], [3, 5, 7, 9]))],
)
def test_columns_before_hole_are_not_delayed(
    memory: zlog.Store, indexes: list[int] | None, parts: Sequence[list[int]]
) -> None:
    log, holes = log_with_two_holes(memory, 1)
    batches = zlog.Log.open(memory, "orders").read_columns(indexes=indexes, hole_timeout=5)
    for columns, expected in zip(batches, parts, strict=True):
        assert columns.positions.tolist() == expected
        assert not columns.gaps
        if holes:
            log.write(holes.pop(0), b"x", tags=["t"])
