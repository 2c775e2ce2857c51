"""Sequencers that are slow, out of reach, paused or replaced; what writers and followers do."""

from __future__ import annotations

import threading
import time

import pytest

import zlog
from zlog import Entry
from zlog._io import drive

from ..support.local_sequencer import LocalSequencer
from .faulty import FaultyStore, dies_at
from .planted import leave_sealed


@pytest.fixture
def log(plain: zlog.Store, sequencer: LocalSequencer) -> zlog.Log:
    """A log that has the sequencer, with one entry."""
    log = zlog.Log.create(plain, "orders", width=2, timeout=10, sequencer_timeout=0.5)
    log.append(b"first")
    assert log.view.sequencer == sequencer.address
    return log


def newest(log: zlog.Log) -> zlog.View:
    return zlog.Log.open(log.store, "orders").view


def drop_sequencer(log: zlog.Log) -> None:
    """Go on without the sequencer, as a writer that can't reach it."""
    client = log._client
    drive(client.layout.drop_sequencer(client.layout.view, client.deadline()))


def test_repeated_append_timeouts_drop_lost_sequencer(
    log: zlog.Log, sequencer: LocalSequencer
) -> None:
    sequencer.pause()
    began = time.monotonic()
    while True:
        try:
            log.append(b"impatient", timeout=0.2)
            break
        except zlog.SequencerTimeout:
            assert time.monotonic() - began < 5
    assert time.monotonic() - began >= 0.5
    assert newest(log).sequencer == ""


def test_distant_failures_do_not_accumulate(log: zlog.Log, sequencer: LocalSequencer) -> None:
    before = newest(log)
    for _ in range(3):
        sequencer.pause()
        with pytest.raises(zlog.SequencerTimeout):
            log.append(b"impatient", timeout=0.2)
        sequencer.resume()
        time.sleep(0.6)  # no client asks
    log.append(b"later")
    assert newest(log) == before


def test_sealed_log_with_paused_sequencer_recovers(
    log: zlog.Log, sequencer: LocalSequencer
) -> None:
    """A client that finishes an abandoned change spends little of its time on the sequencer."""
    leave_sealed(log.store, newest(log).objects())
    sequencer.pause()
    began = time.monotonic()
    assert log.read(0).data == b"first"
    assert time.monotonic() - began < 5


def test_calls_with_short_timeout_recover_sealed_log(plain: zlog.Store) -> None:
    """No call has the patience to wait for a view that never comes; together they have."""
    log = zlog.Log.create(plain, "orders", width=2)
    log.append(b"first")
    leave_sealed(log.store, newest(log).objects())
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            assert log.append(b"second", timeout=0.1) == 1
            break
        except zlog.StaleEpoch:
            pass
    assert log.read(1).data == b"second"


def test_follower_leaves_replaced_sequencer(
    log: zlog.Log, sequencer: LocalSequencer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old one lives, knows nothing of it, and would let its followers wait for ever."""
    monkeypatch.setattr("zlog._read.iterate._WAIT_SECONDS", 0.2)
    reader = zlog.Log.open(log.store, "orders")
    follower = reader.follow(1)
    seen: list[bytes] = []

    def follow() -> None:
        for _ in range(3):
            item = next(follower)
            assert isinstance(item, Entry)
            seen.append(item.data)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    time.sleep(0.1)  # the follower is at the sequencer
    sequencer.withdraw()
    writer = zlog.Log.open(log.store, "orders")
    drop_sequencer(writer)
    writer.append_many([b"a", b"b", b"c"])
    thread.join(10)
    assert seen == [b"a", b"b", b"c"]


def test_follower_notices_log_removal(log: zlog.Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zlog._read.iterate._WAIT_SECONDS", 0.2)
    follower = zlog.Log.open(log.store, "orders").follow(1)
    zlog.Log.remove(log.store, "orders")
    heard: list[zlog.LogNotFound] = []

    def follow() -> None:
        try:
            next(follower)
        except zlog.LogNotFound as error:
            heard.append(error)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    thread.join(10)
    assert len(heard) == 1


def test_others_finish_interrupted_sequencer_drop(log: zlog.Log, sequencer: LocalSequencer) -> None:
    for number in range(1, 6):
        dying = zlog.Log.open(FaultyStore(log.store, dies_at(number)), "orders")
        with pytest.raises(BaseException, match="at operation"):
            drop_sequencer(dying)
        position = log.append(b"%d" % number)
        assert log.read(position).data == b"%d" % number
        assert newest(log).sequencer in ("", sequencer.address)
