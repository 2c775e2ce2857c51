"""Blocking appends of several threads travel together, and each gets its own answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

import zlog
from zlog._append import gather

from ..support.logs import data_of
from ..support.threads import at_once
from .faulty import Died, FaultyStore, loses_first

SECONDS = 30


@pytest.fixture
def log(faulty: FaultyStore) -> Iterator[zlog.Log]:
    with zlog.Log.create(faulty, "orders", width=4, timeout=SECONDS) as opened:
        yield opened


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(64) as pool:
        yield pool


class Jam:
    """Holds the first write up, so that appends gather; ``arrived`` waits for so many of them."""

    def __init__(
        self, store: FaultyStore, log: zlog.Log, then: Callable[[], str | None] = lambda: None
    ) -> None:
        self._open = threading.Event()
        self._held = threading.Event()
        self._rounds = log._shared._rounds
        self._joined = self._rounds.joined
        self._then = then
        store.fault = self._fault

    def _fault(self, _: int, method: str) -> str | None:
        if method != "write" or self._held.is_set():
            return None
        self._held.set()
        assert self._open.wait(SECONDS)
        return self._then()

    def arrived(self, count: int) -> None:
        """Wait until so many more appends are there, the first of them with the store."""
        assert self._held.wait(SECONDS)
        self._joined += count
        end = time.monotonic() + SECONDS
        while self._rounds.joined < self._joined:
            assert time.monotonic() < end
            time.sleep(0.001)

    def end(self) -> None:
        """Let the write go on."""
        self._open.set()


def append_beside(
    jam: Jam, log: zlog.Log, threads: ThreadPoolExecutor, count: int
) -> tuple[Future[int], list[Future[int]]]:
    """Append one entry, which is held up, and then so many that gather meanwhile."""
    first = threads.submit(log.append, b"first")
    jam.arrived(1)
    others = [threads.submit(log.append, b"%d" % i) for i in range(count)]
    jam.arrived(count)
    return first, others


def test_waiting_appends_form_one_round(
    faulty: FaultyStore, log: zlog.Log, threads: ThreadPoolExecutor
) -> None:
    jam = Jam(faulty, log)
    before = faulty.operations
    first, others = append_beside(jam, log, threads, 40)
    jam.end()
    assert first.result(SECONDS) == 0
    assert sorted(each.result(SECONDS) for each in others) == list(range(1, 41))
    assert faulty.operations - before == 1 + 4
    found = data_of(log.read_range())
    assert [found[each.result()] for each in others] == [b"%d" % i for i in range(40)]


def test_concurrent_threads_share_rounds(faulty: FaultyStore, log: zlog.Log) -> None:
    calls, count = 20, 32
    before = faulty.operations

    def append(number: int) -> list[int]:
        return [log.append(b"%d" % number) for _ in range(calls)]

    positions = at_once(append, count)
    assert sorted(p for each in positions for p in each) == list(range(calls * count))
    assert all(each == sorted(each) for each in positions), "an append is behind its thread's last"
    assert faulty.operations - before < calls * count
    found = data_of(log.read_range())
    assert all(found[p] == b"%d" % i for i in range(count) for p in positions[i])


def test_append_with_own_timeout_is_sent_alone(
    faulty: FaultyStore, log: zlog.Log, threads: ThreadPoolExecutor
) -> None:
    jam = Jam(faulty, log)
    first, others = append_beside(jam, log, threads, 3)
    assert log.append(b"alone", timeout=SECONDS) == 1
    jam.end()
    assert {each.result(SECONDS) for each in (first, *others)} == {0, 2, 3, 4}


def test_lost_reply_fails_only_affected_appends(
    memory: zlog.Store, faulty: FaultyStore, threads: ThreadPoolExecutor
) -> None:
    with zlog.Log.create(faulty, "orders", width=4, timeout=0.5) as log:
        lose = loses_first("write")

        def then() -> None:
            faulty.fault = lose

        jam = Jam(faulty, log, then)
        _, others = append_beside(jam, log, threads, 40)
        jam.end()
        errors = [each.exception(SECONDS) for each in others]
    lost = [error for error in errors if error is not None]
    assert len(lost) == 10  # one object's share
    assert all(type(error) is zlog.StoreTimeout for error in lost)
    assert len({id(error) for error in lost}) == 10, "each has an error of its own"
    assert {error.positions for error in lost if isinstance(error, zlog.ZlogError)} == {(None,)}
    with zlog.Log.open(memory, "orders") as log:
        assert len(data_of(log.read_range())) == 41  # indeterminate: here it landed


def test_append_not_sent_in_time_is_not_written(
    faulty: FaultyStore, threads: ThreadPoolExecutor
) -> None:
    """The leader of the round that gathers gives up, and the others, each at its own time."""
    with zlog.Log.create(faulty, "orders", width=4, timeout=0.2) as log:
        jam = Jam(faulty, log)
        first, others = append_beside(jam, log, threads, 5)
        errors = [each.exception(SECONDS) for each in others]
        assert {type(error) for error in errors} == {zlog.StoreTimeout}
        assert {str(error).partition(":")[0] for error in errors} == {
            "the entry was not sent in time"
        }
        jam.end()
        assert first.result(SECONDS) == 0
        assert data_of(log.read_range()) == [b"first"]


def test_appends_regroup_if_their_leader_times_out(
    faulty: FaultyStore, log: zlog.Log, threads: ThreadPoolExecutor
) -> None:
    jam = Jam(faulty, log)
    first = threads.submit(log.append, b"first")
    jam.arrived(1)
    log._shared._rounds.timeout = 0.2
    leader = threads.submit(log.append, b"leader")
    jam.arrived(1)
    log._shared._rounds.timeout = SECONDS
    others = [threads.submit(log.append, b"other") for _ in range(5)]
    jam.arrived(5)
    assert "not sent" in str(leader.exception(SECONDS))
    jam.arrived(5)
    jam.end()
    assert first.result(SECONDS) == 0
    assert {each.result(SECONDS) for each in others} == {1, 2, 3, 4, 5}


def test_an_interrupted_leader_leaves_other_appends_unanswered(
    faulty: FaultyStore, log: zlog.Log, threads: ThreadPoolExecutor
) -> None:
    def die(_: int, method: str) -> None:
        if method == "write":
            faulty.fault = lambda *_: None
            raise Died("interrupted")

    def then() -> None:
        faulty.fault = die

    jam = Jam(faulty, log, then)
    first, others = append_beside(jam, log, threads, 5)
    jam.end()
    assert first.result(SECONDS) == 0
    errors = [each.exception(SECONDS) for each in others]
    assert sorted(type(error).__name__ for error in errors) == ["Died"] + ["StoreTimeout"] * 4
    assert log.append(b"next") > 0


def test_round_size_is_limited(
    faulty: FaultyStore, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "ROUND_ENTRIES_MAX", 4)
    with zlog.Log.create(faulty, "orders", width=4, timeout=SECONDS) as log:
        jam = Jam(faulty, log)
        before = faulty.operations
        first, others = append_beside(jam, log, threads, 10)
        jam.end()
        assert {each.result(SECONDS) for each in (first, *others)} == set(range(11))
        assert faulty.operations - before == 1 + 4 + 4 + 2
