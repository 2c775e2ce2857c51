"""Appending without any sequencer: ask the objects, try the next position, repeat."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import zlog

from ..support.threads import at_once
from .faulty import WithoutSequencer


@pytest.fixture
def slow(store: zlog.Store) -> Iterator[zlog.Log]:
    with zlog.Log.create(WithoutSequencer(store), "orders", width=4, hole_timeout=0.05) as log:
        yield log


def test_the_view_names_nobody(slow: zlog.Log) -> None:
    assert slow.view.sequencer == ""
    assert slow.append(b"a") == 0
    assert slow.append_many([b"b", b"c"]) == [1, 2]
    assert slow.tail() == 3
    assert slow.view.sequencer == ""


def test_competing_appenders_get_positions_of_their_own(slow: zlog.Log) -> None:
    """Every appender finds the same tail; write-once decides, and the others try the next."""

    def work(name: int) -> list[tuple[int, bytes]]:
        found: list[tuple[int, bytes]] = []
        with zlog.Log.open(slow.store, "orders") as log:
            for i in range(20):
                entries = [b"%d.%d.%d" % (name, i, j) for j in range(1 + i % 3)]
                found += zip(log.append_many(entries), entries, strict=True)
        return found

    found = [each for one in at_once(work, 4) for each in one]
    acknowledged = dict(found)
    assert len(acknowledged) == len(found), "a position was acknowledged twice"
    read = {i.position: i.data for i in slow.read_range() if isinstance(i, zlog.Entry)}
    assert read == acknowledged
    assert slow.tail() == max(acknowledged) + 1


def test_real_time_order_holds(slow: zlog.Log) -> None:
    """What was acknowledged before an append began lies below it, of any writer."""
    other = zlog.Log.open(slow.store, "orders")
    last = -1
    for i in range(20):
        position = (slow, other)[i % 2].append_many([b"x"] * (1 + i % 5))[0]
        assert position > last
        last = slow.tail() - 1


def test_a_follower_without_a_sequencer_polls(slow: zlog.Log) -> None:
    follower = slow.follow()
    timer = threading.Timer(0.1, lambda: slow.append_many([b"x", b"y"]))
    timer.start()
    assert [next(follower).position for _ in range(2)] == [0, 1]
    timer.join()


def test_a_writer_takes_the_sequencer_that_its_store_shares(
    store: zlog.Store, slow: zlog.Log
) -> None:
    assert slow.append(b"slow") == 0
    with zlog.Log.open(store, "orders") as quick:
        assert quick.append(b"quick") == 1
        assert quick.view.sequencer == ("" if store.sequencer() is None else "store:")
