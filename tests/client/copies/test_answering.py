"""When copies of an object have answered, and what may be said of a position before that."""

from __future__ import annotations

import contextlib
import time

import pytest

import zlog
from zlog import FindingKind
from zlog._replica.replicas import TRIES_MAX

from ...conformance.stored import MemoryDoor
from .replicated import DAMAGES, HEAD, LARGE, Replicated, with_older_copy


@pytest.mark.parametrize("third", ["down", "without the class"])
def test_nothing_is_lost_before_all_copies_have_said_so(
    store: Replicated, stripe: str, third: str
) -> None:
    for rank in (0, 1):
        DAMAGES["stream"](store, stripe, rank)
    if third == "down":
        store.up = {0, 1}
    else:
        store.without_class = {2}
    with zlog.Log.open(store, "orders") as log:
        with pytest.raises(zlog.StoreTimeout, match=r"position 2: .* one that may have it did not"):
            log.read(2)
        assert log.read(1).data == LARGE[1]
        store.up, store.without_class = {0, 1, 2}, set()
        assert log.read(2).data == LARGE[2]


def test_a_copy_whose_osd_starts_anew_meanwhile_is_one_copy(store: Replicated, stripe: str) -> None:
    for rank in (0, 1):
        DAMAGES["stream"](store, stripe, rank)
    store.up = {0, 1}

    def restart() -> None:
        store.map_epoch = 1 + len(store.asked) // 10

    store.on_ask = restart
    with zlog.Log.open(store, "orders") as log, pytest.raises(zlog.StoreTimeout):
        log.read(2)


def test_copies_are_asked_anew_when_the_layout_changes_meanwhile(
    store: Replicated, stripe: str
) -> None:
    DAMAGES["stream"](store, stripe, 0)
    with zlog.Log.open(store, "orders") as log, zlog.Log.open(store, "orders") as other:

        def roll() -> None:
            if len(store.asked) == 1:
                other.roll()

        store.on_ask = roll
        assert log.read(2).data == LARGE[2]
        assert log.view == other.view


@pytest.mark.parametrize("apart", [True, False])
def test_slow_copies_are_lost_all_the_same(
    store: Replicated, stripe: str, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    """Though the time in which copies are asked is over before all answers are there."""
    for rank in range(3):
        DAMAGES["stream"](store, stripe, rank)
    store.tells_copies_apart = apart
    store.on_ask = lambda: time.sleep(0.02)
    monkeypatch.setattr("zlog._replica.replicas.SECONDS_MAX", 0.4)
    monkeypatch.setattr("zlog._read.copies.SECONDS_MAX", 0.4)
    monkeypatch.setattr("zlog._read.copies._PAUSE_SECONDS_MAX", 2.0)
    with zlog.Log.open(store, "orders") as log, pytest.raises(zlog.CorruptEntry):
        log.read(2)


@pytest.mark.parametrize("acting", [2, 3])
def test_copies_that_are_not_told_apart_have_to_be_there(
    store: Replicated, stripe: str, monkeypatch: pytest.MonkeyPatch, acting: int
) -> None:
    """So on a cluster without the class."""
    for rank in range(3):
        DAMAGES["stream"](store, stripe, rank)
    store.up = set(range(acting))
    store.tells_copies_apart = False
    monkeypatch.setattr("zlog._read.copies._PAUSE_SECONDS", 0.001)
    monkeypatch.setattr("zlog._read.copies._PAUSE_SECONDS_MAX", 0.002)
    error = zlog.CorruptEntry if acting == 3 else zlog.StoreTimeout
    with zlog.Log.open(store, "orders") as log, pytest.raises(error):
        log.read(2)
    assert store.asked.count("read") == 3 * TRIES_MAX


@pytest.mark.parametrize("what", ["header", "head"])
def test_nothing_is_taken_from_an_older_copy_while_the_newest_does_not_answer(
    store: Replicated, stripe: str, what: str
) -> None:
    name = HEAD if what == "head" else stripe
    with zlog.Log.open(store, "orders") as log:
        newest = with_older_copy(store, log, name, what, 1)
        damaged = MemoryDoor(store.copies[0]).load(name)
        store.up = {0, 1}
        with pytest.raises((zlog.StoreTimeout, zlog.CorruptEntry)):  # asked of it, or of all
            log.stat()
        with contextlib.suppress(zlog.StoreTimeout):
            assert FindingKind.HEALED not in {finding.kind for finding in log.check(heal=True)}
        assert MemoryDoor(store.copies[0]).load(name) == damaged
        store.up = {0, 1, 2}
        assert FindingKind.HEALED in {finding.kind for finding in log.check(heal=True)}
    assert MemoryDoor(store.copies[0]).load(name) == newest
