"""What writers, readers and followers do when their sequencer is lost and another leads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

import zlog
from zlog import Entry
from zlog._io import drive

from ..support.local_sequencer import LocalSequencer
from .faulty import FaultyStore

PATIENCE = 20.0
"""Seconds after which these writers would go on without a sequencer; no test takes so long."""


@pytest.fixture
def start(plain: zlog.Store) -> Iterator[Callable[[], LocalSequencer]]:
    """Starts sequencers of the store, each of which leads from then on."""
    started = []

    def start() -> LocalSequencer:
        started.append(LocalSequencer(plain, leads=True))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def former(start: Callable[[], LocalSequencer]) -> LocalSequencer:
    return start()


@pytest.fixture
def log(plain: zlog.Store, former: LocalSequencer) -> zlog.Log:
    """A log that the former leader serves, with one entry."""
    log = zlog.Log.create(plain, "orders", width=2, timeout=30, sequencer_timeout=PATIENCE)
    log.append(b"first")
    assert log.view.sequencer == former.address
    return log


def sequencers(log: zlog.Log) -> list[str]:
    return [view.sequencer for view in log.views()]


@pytest.mark.parametrize("late", [0.0, 0.5])
@pytest.mark.parametrize("fate", ["vanish", "pause"])
def test_writer_finds_new_leader(
    log: zlog.Log,
    former: LocalSequencer,
    start: Callable[[], LocalSequencer],
    fate: str,
    late: float,
) -> None:
    """Long before it would give up the old one, and with no view without a sequencer between."""
    getattr(former, fate)()
    positions: list[int] = []
    writer = threading.Thread(target=lambda: positions.append(log.append(b"second")))
    if late:
        writer.start()
        time.sleep(late)
    leader = start()
    if not late:
        writer.start()
    writer.join(PATIENCE / 2)
    assert positions == [1]
    assert sequencers(log) == ["", former.address, leader.address]


def test_writer_asks_announced_leader_to_open_log(
    log: zlog.Log, former: LocalSequencer, start: Callable[[], LocalSequencer]
) -> None:
    """It need not wait until the leader comes to its log by itself."""
    former.vanish()
    client = log._client
    before = log.view
    assert not drive(client.layout.find_leader(before, client.deadline()))  # it is the same
    leader = start()
    assert drive(client.layout.find_leader(before, client.deadline()))
    assert log.view.sequencer == leader.address
    epoch = log.view.epoch
    assert drive(client.layout.find_leader(before, client.deadline()))
    assert log.view.epoch == epoch  # which is asked for once


def test_drop_sequencer_looks_for_new_leader_first(
    log: zlog.Log, former: LocalSequencer, start: Callable[[], LocalSequencer]
) -> None:
    before = log.view
    former.vanish()
    leader = start()
    client = log._client
    drive(client.layout.drop_sequencer(before, client.deadline()))
    assert sequencers(log) == ["", former.address, leader.address]


def test_announced_non_leader_is_ignored(
    plain: zlog.Store, log: zlog.Log, former: LocalSequencer
) -> None:
    other = LocalSequencer(plain)
    other.announce()
    former.vanish()
    client = log._client
    assert not drive(client.layout.find_leader(log.view, client.deadline()))
    other.stop()


def test_unresponsive_directory_yields_no_leader(log: zlog.Log) -> None:
    silent = FaultyStore(
        log.store, lambda _, method: "lose" if method == "sequencer_find" else None
    )
    other = zlog.Log.open(silent, "orders")
    client = other._client
    assert not drive(client.layout.find_leader(other.view, client.deadline()))


def test_tail_comes_from_objects_if_sequencer_hangs(log: zlog.Log, former: LocalSequencer) -> None:
    former.pause()
    began = time.monotonic()
    assert log.tail() == 1
    assert time.monotonic() - began < 5
    assert log.view.sequencer == former.address


def test_follower_leaves_frozen_sequencer(
    log: zlog.Log, former: LocalSequencer, start: Callable[[], LocalSequencer]
) -> None:
    """It hears of entries of the new leader within seconds, though the old one never answers."""
    seen: list[bytes] = []
    reader = zlog.Log.open(log.store, "orders", sequencer_timeout=PATIENCE)

    def follow() -> None:
        for item in reader.follow(0):
            assert isinstance(item, Entry)
            seen.append(item.data)
            if len(seen) == 3:
                return

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    while not seen:
        time.sleep(0.01)
    former.pause()
    start()
    began = time.monotonic()
    log.append_many([b"second", b"third"])
    follower.join(PATIENCE / 2)
    assert seen == [b"first", b"second", b"third"]
    assert time.monotonic() - began < PATIENCE / 2
