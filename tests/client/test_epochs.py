"""Changes of the layout: several at once, half-way, on logs that are removed meanwhile."""

from __future__ import annotations

import asyncio

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._base.io import deadline_of
from zlog._base.log_options import LogOptions
from zlog._base.settings import HandleOptions
from zlog._catalog.head import Head
from zlog._client import LogClient
from zlog._io import BlockingIo, drive
from zlog._layout.stripe_objects import seal
from zlog._layout.views import Change, backoff, change_view, unless_newer
from zlog._lifecycle import create_log
from zlog._native.local import MemoryStore
from zlog.testing import run_virtually

from ..support.logs import new_epoch
from .faulty import FaultyStore, at_method, slow_io
from .planted import leave_sealed

SLOW = (0.01, 0.1)
"""Seconds an operation takes on a cluster with a lot to do."""


class Clients:
    """Clients of one log without a sequencer, on a slow store in virtual time."""

    def __init__(self, store: zlog.Store, seed: int) -> None:
        self.io = slow_io(store, seed, *SLOW)
        self.patient = Deadline(None, self.io.monotonic)

    async def open(self, count: int) -> list[LogClient]:
        await create_log(self.io, "orders", LogOptions(width=8), self.patient)
        settings = HandleOptions(timeout=None)
        return [await LogClient.open(self.io, "orders", settings) for _ in range(count)]

    async def assert_settled(self) -> zlog.View:
        """No client holds an epoch above that of the newest view, so that all can go on in it."""
        state = await Head(self.io, "orders").read(self.patient)
        assert state.view is not None
        assert state.counter == state.view.epoch
        return state.view


@pytest.mark.parametrize("seed", range(5))
def test_many_writers_of_a_sealed_log_continue(memory: zlog.Store, seed: int) -> None:
    """All find nothing newer, wait and take the steps; none may cut the others off for ever."""

    async def work() -> float:
        clients = Clients(memory, seed)
        opened = await clients.open(8)
        head = Head(clients.io, "orders")
        epoch, _ = await head.epoch_next(clients.patient)
        await seal(clients.io, opened[0].layout.view.objects(), epoch, clients.patient, start=0)
        began = clients.io.monotonic()
        positions = await asyncio.gather(*(c.appender.append([b"x"], c.deadline()) for c in opened))
        assert sorted(p for (p,) in positions) == list(range(8))
        await clients.assert_settled()
        return clients.io.monotonic() - began

    assert run_virtually(work(), seed) < 20


def test_backoff_is_bounded(memory: zlog.Store) -> None:
    """Also for a follower that has stood before a hole for days."""

    async def work() -> float:
        io = slow_io(memory, 0, *SLOW)
        await backoff(io, 10_000)
        return io.monotonic()

    assert run_virtually(work()) <= 0.5


def test_refused_seal_stops_layout_change(memory: zlog.Store) -> None:
    """A client with a higher epoch was there first: what that object holds is not known yet."""
    log = zlog.Log.create(memory, "orders", width=2)
    log.append_many([b"%d" % i for i in range(6)])
    last = log.view.object_of(5)
    epochs: list[int] = []

    def seal_the_last_one_and_die() -> None:
        epochs.append(leave_sealed(memory, [last]))

    hooked = FaultyStore(memory, at_method("seal", seal_the_last_one_and_die))
    io = BlockingIo(hooked)
    changed = drive(change_view(io, "orders", lambda view: view, deadline_of(io, 5)))
    assert isinstance(changed, Change)
    assert changed.view.epoch > epochs[0]
    assert changed.tail == 6
    assert len(log.views()) == 2
    assert log.append(b"next") == 6


def test_refused_view_is_not_adopted(memory: zlog.Store) -> None:
    """Another client was faster: this one goes on from the view that won."""
    log = zlog.Log.create(memory, "orders", width=2)
    other = zlog.Log.open(memory, "orders")

    def be_faster() -> None:
        new_epoch(other)
        assert other.append(b"other") == 0

    hooked = FaultyStore(memory, at_method("view_propose", be_faster))
    io = BlockingIo(hooked)
    changed = drive(change_view(io, "orders", lambda view: view, deadline_of(io, 5)))
    assert isinstance(changed, Change)
    assert changed.tail == 1
    assert [view.epoch for view in log.views()] == [1, other.view.epoch, changed.view.epoch]
    assert log.append(b"next") == 1


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("method", ["epoch_next", "seal", "view_propose"])
def test_change_of_removed_log_raises_not_found(
    memory: zlog.Store, method: str, *, again: bool
) -> None:
    """It says so, and does not touch another log that has the name by then."""
    log = zlog.Log.create(memory, "orders", width=2)

    def remove() -> None:
        zlog.Log.remove(memory, "orders")
        if again:
            zlog.Log.create(memory, "orders", width=2)

    other = zlog.Log.open(FaultyStore(memory, at_method(method, remove)), "orders")
    layout = other._client.layout
    with pytest.raises(zlog.LogNotFound):
        drive(layout.change(unless_newer(log.view), other._client.deadline()))
    assert layout.view.log_id == log.view.log_id
    if again:
        new = zlog.Log.open(memory, "orders")
        assert len(new.views()) == 1
        assert new.append(b"new") == 0


def test_removal_includes_newly_sealed_objects(memory: zlog.Store) -> None:
    """A change of the layout that comes too late must not leave objects behind."""
    log = zlog.Log.create(memory, "orders", width=3)
    log.append_many([b"a", b"b", b"c"])
    objects = [ref.name for ref in log.view.objects()]

    def seal_above() -> None:
        leave_sealed(memory, log.view.objects())

    zlog.Log.remove(FaultyStore(memory, at_method("remove", seal_above)), "orders")
    assert isinstance(memory, MemoryStore)
    assert [name for name in objects if memory.peek(name) is not None] == []
    assert memory.peek("zlog.orders.head") is None
    assert zlog.Log.create(memory, "orders", width=3).append(b"new") == 0


def test_known_view_never_goes_back(memory: zlog.Store) -> None:
    """Replies may overtake each other; a position that was trimmed for a reader stays so."""
    log = zlog.Log.create(memory, "orders", width=2)
    log.append_many([b"a", b"b", b"c"])
    before = log.view
    log.trim_to(2)
    assert log.tail() == 3
    log.stat()
    after = log.view
    assert (after.trim_point, after.tail_floor) == (2, 3)
    layout = log._client.layout
    assert layout.adopt(before) == after
    newer = new_epoch(log)
    assert layout.adopt(after) == newer


@pytest.mark.parametrize("seed", range(3))
def test_many_writers_of_a_full_stripe_change_the_layout_once(
    memory: zlog.Store, seed: int
) -> None:
    """All are refused at once, and the others take what it brings in."""
    epochs = 0

    def count(_: int, method: str) -> None:
        nonlocal epochs
        epochs += method == "epoch_next"

    async def work() -> None:
        io = slow_io(FaultyStore(memory, count), seed, 0.001, 0.01)
        patient = Deadline(None, io.monotonic)
        await create_log(io, "orders", LogOptions(width=4), patient)
        settings = HandleOptions(timeout=None)
        clients = [await LogClient.open(io, "orders", settings) for _ in range(30)]
        before = clients[0].layout.view
        nonlocal epochs
        epochs = 0
        views = await asyncio.gather(*(each.layout.renew(before, patient) for each in clients))
        assert all(view.epoch > before.epoch for view in views)

    run_virtually(work(), seed)
    assert epochs <= 3
