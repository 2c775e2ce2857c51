"""Attempts at a delivery: each entry is in the log once, also when attempts die or come late."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from collections import Counter
from collections.abc import Iterator

import pytest

import zlog
from zlog import SequenceSuperseded, aio, testing
from zlog._native import messages
from zlog.testing import AT_ONCE, Fate, StoreCall, run_virtually

from ..support.local_sequencer import LocalSequencer
from ..support.logs import leave_hole
from .appending_once import ROWS, deliver, entries_in, shuffled
from .faulty import Died, FaultyStore, WithoutSequencer, at_method, dies_at, dies_in
from .planted import call, write

pytestmark = pytest.mark.usefixtures("small_rounds")


@pytest.fixture(params=["store", "tcp", "none"])
def kind(request: pytest.FixtureRequest) -> str:
    """Who hands positions out: the store's own sequencer, one over TCP, or none."""
    return str(request.param)


@pytest.fixture
def served(kind: str, memory: zlog.Store) -> Iterator[zlog.Store]:
    """A store in memory with a log `orders` of that kind."""
    if kind == "store":
        zlog.Log.create(memory, "orders", width=3)
        yield memory
        return
    plain = WithoutSequencer(memory)
    running = LocalSequencer(plain) if kind == "tcp" else None
    zlog.Log.create(plain, "orders", width=3)
    yield plain
    if running:
        running.stop()


def test_a_repeated_delivery_finishes_one_that_died(served: zlog.Store) -> None:
    """At every single operation; and the rows come in another order each time."""
    died = True
    number = 0
    while died:
        before = Counter(entries_in(served))
        try:
            deliver(FaultyStore(served, dies_at(number)), shuffled(number), number)
            died = False
        except Died:
            deliver(served, shuffled(-number), number)
        assert Counter(entries_in(served)) - before == Counter(ROWS), f"died at {number}"
        number += 1
    assert number > 10
    log = zlog.Log.open(served, "orders")
    assert list(log.check()) == []


def test_order_is_kept_if_attempts_die(served: zlog.Store) -> None:
    """At every single operation."""
    number, died = 0, True
    while died:
        try:
            deliver(FaultyStore(served, dies_at(number)), sequence=number, in_order=True)
            died = False
        except Died:
            deliver(served, sequence=number, in_order=True)
        assert entries_in(served) == ROWS * (number + 1), f"died at {number}"
        number += 1
    assert number > 10


@pytest.mark.parametrize("number", [1, 2, 8])
def test_order_is_kept_if_positions_are_taken_or_sealed(served: zlog.Store, number: int) -> None:
    for sequence, interfere in enumerate((entries_in, change_width)):
        fault = at_method("write", functools.partial(interfere, served), number)
        deliver(FaultyStore(served, fault), sequence=sequence, in_order=True)
        with zlog.Log.open(served, "orders", hole_timeout=None) as log:
            kinds = [each.kind for each in log.read_range() if isinstance(each, zlog.Gap)]
        assert zlog.GapKind.UNWRITTEN not in kinds
        assert entries_in(served) == ROWS * (sequence + 1)


@pytest.mark.parametrize("method", ["delivery_grant", "write"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_superseded_attempt_writes_nothing(served: zlog.Store, method: str, number: int) -> None:
    """A zombie, stopped before it asks for positions or writes there; another one delivers."""
    appended: list[int] = []
    fault = at_method(method, lambda: appended.append(deliver(served, shuffled(3))), number)
    with pytest.raises(SequenceSuperseded) as caught:
        deliver(FaultyStore(served, fault))
    assert "part 0 of sequence 1 of producer 'query'" in str(caught.value)
    assert not caught.value.retryable
    assert len(appended) == 1
    assert Counter(entries_in(served)) == Counter(ROWS)


@pytest.mark.parametrize("method", ["delivery_begin", "delivery_grant"])
def test_an_attempt_of_a_finished_batch_writes_nothing(served: zlog.Store, method: str) -> None:
    def finish() -> None:
        deliver(served)
        zlog.Log.open(served, "orders").complete_sequences("query", before=2)

    with pytest.raises(SequenceSuperseded, match="is complete"):
        deliver(FaultyStore(served, at_method(method, finish)))
    assert Counter(entries_in(served)) == Counter(ROWS)
    assert deliver(served, sequence=2) == len(ROWS)


def test_unused_positions_of_a_superseded_attempt_are_filled(memory: zlog.Store) -> None:
    log = zlog.Log.create(memory, "orders", width=3, hole_timeout=None)
    fault = at_method("delivery_grant", lambda: deliver(memory), 2)
    with pytest.raises(SequenceSuperseded):
        deliver(FaultyStore(memory, fault))
    gaps = [item.kind for item in log.read_range() if isinstance(item, zlog.Gap)]
    assert set(gaps) == {zlog.GapKind.FILLED}


@pytest.mark.parametrize("kind", ["store", "tcp"], indirect=True)
@pytest.mark.parametrize("method", ["delivery_grant", "tail_raise"])
def test_positions_of_an_old_epoch_are_not_filled(served: zlog.Store, method: str) -> None:
    """It was superseded and its epoch has ended: others are granted the same positions now."""
    zlog.Log.open(served, "orders").append(b"before")
    other = zlog.Log.open(served, "orders")
    granted: list[range] = []

    def supersede() -> None:
        request = messages.delivery_begin(other.view.log_id, "query", 1, 0, 0)
        call(served, "zlog.orders.head", "delivery_begin", request)

    def end_epoch() -> None:
        change_width(served)
        first = leave_hole(other, 7)
        granted.append(range(first, first + 7))

    faults = [at_method("delivery_grant", supersede), at_method(method, end_epoch)]

    def fault(at: int, called: str) -> None:
        for each in faults:
            each(at, called)

    with pytest.raises(SequenceSuperseded):
        deliver(FaultyStore(served, fault))
    assert granted == [range(1, 8)]
    for position in granted[0]:
        write(other, position, b"s" * 16, position, b"other")
    assert list(other.check()) == []


def fill_all(store: zlog.Store) -> None:
    with zlog.Log.open(store, "orders", hole_timeout=0) as log:
        assert all(log.read_range())


def test_a_filled_position_moves_the_delivery(served: zlog.Store) -> None:
    faulty = FaultyStore(served, at_method("write", lambda: fill_all(served), 2))
    assert deliver(faulty) == len(ROWS)
    assert Counter(entries_in(served)) == Counter(ROWS)
    assert deliver(served) == 0


def change_width(store: zlog.Store) -> None:
    with zlog.Log.open(store, "orders") as log:
        log.reconfigure(width=5 if log.view.live_stripe.width != 5 else 2)


def test_grants_are_found_after_a_change_of_width(served: zlog.Store) -> None:
    """The positions lie in a stripe that has ended, some written and some not."""
    for number in range(1, 7):
        before = Counter(entries_in(served))
        with pytest.raises(Died):
            deliver(FaultyStore(served, dies_in("write", number)), shuffled(number), number)
        change_width(served)
        deliver(served, ROWS, number)
        assert Counter(entries_in(served)) - before == Counter(ROWS), f"died in write {number}"


def test_another_writers_entry_is_not_taken_for_a_delivered_one(memory: zlog.Store) -> None:
    """Without a sequencer a client that was faster may stand where positions were granted."""
    plain = WithoutSequencer(memory)
    log = zlog.Log.create(plain, "orders", width=3)
    faulty = FaultyStore(plain, dies_at(6))
    with pytest.raises(Died):
        deliver(faulty)
    log_id, epoch, first = log.view.log_id, log.view.epoch, log.tail()
    number = 2  # of the next attempt, which is granted three positions and dies
    call(
        plain,
        "zlog.orders.head",
        "delivery_begin",
        messages.delivery_begin(log_id, "query", 1, 0, 0),
    )
    grant = messages.delivery_grant(log_id, "query", 1, 0, 1, number, epoch, first, 3, True)
    call(plain, "zlog.orders.head", "delivery_grant", grant)
    write(log, first, b"s" * 16, 0, ROWS[0])
    deliver(plain)
    assert Counter(entries_in(plain)) == Counter([*ROWS, ROWS[0]])


@pytest.mark.parametrize("method", ["delivery_grant", "delivery_read"])
def test_an_attempt_of_a_forgotten_source_writes_nothing(served: zlog.Store, method: str) -> None:
    """Also when the producer has come again, whose attempts have the same numbers."""
    with pytest.raises(Died):
        deliver(FaultyStore(served, dies_in("write", 1)))

    def forget_and_deliver() -> None:
        zlog.Log.open(served, "orders").forget_producer("query")
        deliver(served)
        deliver(served)

    with pytest.raises(SequenceSuperseded, match="is complete"):
        deliver(FaultyStore(served, at_method(method, forget_and_deliver)))
    assert Counter(entries_in(served)) == Counter(ROWS)


each_way_to_end = pytest.mark.parametrize("before", [None, 5], ids=["forgotten", "before-5"])

LATE = 60.0


def comes_again(store: zlog.Store, number: int) -> zlog.Store:
    """A store that does the delivery_done of this number at once, and much later once more."""
    calls = itertools.count()

    def fate(call: StoreCall) -> Fate:
        late = call.method == "delivery_done" and next(calls) == number
        return Fate(again=LATE) if late else AT_ONCE

    return testing.FaultyStore(store, fate)


@each_way_to_end
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_repeated_request_changes_nothing(
    memory: zlog.Store, number: int, known: bool, before: int | None
) -> None:
    zlog.Log.create(memory, "orders", width=3)
    if known:
        deliver(memory)
    appended = len(entries_in(memory))

    async def work() -> None:
        log = await aio.Log.open(memory, "orders")
        cut_off = await aio.Log.open(comes_again(memory, number), "orders")
        async with log, cut_off:
            with contextlib.suppress(zlog.StoreTimeout):
                if before is None:
                    await cut_off.forget_producer("query", timeout=1)
                else:
                    await cut_off.complete_sequences("query", before=before, timeout=1)
            await log.forget_producer("query")
            assert await log.append_once(ROWS, producer="query", sequence=1) == len(ROWS)
            await asyncio.sleep(2 * LATE)
            assert await log.append_once(shuffled(1), producer="query", sequence=1) == 0

    run_virtually(work())
    assert len(entries_in(memory)) == appended + len(ROWS)


@each_way_to_end
def test_a_late_end_of_a_source_changes_nothing(memory: zlog.Store, before: int | None) -> None:
    """It has seen a producer that was forgotten since, and has come again."""
    zlog.Log.create(memory, "orders", width=3)
    deliver(memory)

    def come_again() -> None:
        zlog.Log.open(memory, "orders").forget_producer("query")
        assert deliver(memory) == len(ROWS)

    stopped = FaultyStore(memory, at_method("delivery_done", come_again, 2))
    with zlog.Log.open(stopped, "orders") as log:
        if before is None:
            log.forget_producer("query")
        else:
            log.complete_sequences("query", before=before)
    assert deliver(memory) == 0
    assert Counter(entries_in(memory)) == Counter([*ROWS, *ROWS])
