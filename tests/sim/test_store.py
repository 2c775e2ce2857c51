"""A faulty store does what its plan says."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterator

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._base.io import Call
from zlog._catalog.head import Head
from zlog._io import AsyncioIo
from zlog._native import messages
from zlog._native.completions import CompletionQueue
from zlog.testing import AT_ONCE, Fate, FaultyStore, Process, StoreCall, run_virtually

HEAD = "zlog.orders.head"
NEXT = Call(HEAD, "epoch_next", messages.epoch_next(0))


@pytest.fixture
def memory() -> Iterator[zlog.Store]:
    with zlog.connect("mem://") as store:
        store.execute(HEAD, "head_create", messages.head_create("orders", 1))
        yield store


def epoch(store: zlog.Store) -> int:
    """The counter, which counts how often NEXT took effect."""
    return messages.epoch_read_reply(
        store.execute(HEAD, "epoch_read", messages.epoch_read())[1]
    ).counter


@pytest.mark.parametrize(
    ("fate", "code", "answered", "at_once", "in_the_end"),
    [
        (AT_ONCE, 0, 0.0, 1, 1),
        (Fate(effect=1.0, reply=3.0), 0, 3.0, 0, 1),
        (Fate(effect=None, reply=None), -errno.ETIMEDOUT, 20.0, 0, 0),
        (Fate(reply=None), -errno.ETIMEDOUT, 20.0, 1, 1),
        (Fate(effect=30.0, reply=2.0, error=errno.ETIMEDOUT), -errno.ETIMEDOUT, 2.0, 0, 1),
        (Fate(effect=None, reply=1.0, error=errno.EAGAIN), -errno.EAGAIN, 1.0, 0, 0),
        (Fate(effect=1.0, reply=3.0, again=2.0), 0, 3.0, 0, 2),
    ],
)
def test_submitted_operation_follows_plan(
    memory: zlog.Store, fate: Fate, code: int, answered: float, at_once: int, in_the_end: int
) -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        io = AsyncioIo(FaultyStore(memory, lambda _: fate))
        started = io.start([NEXT])
        assert epoch(memory) == at_once
        (reply,) = await started.finish(Deadline(20.0, loop.time))
        assert reply.code == code
        assert loop.time() == pytest.approx(answered, abs=0.01)
        await asyncio.sleep(40)
        assert epoch(memory) == in_the_end

    run_virtually(work())


def test_operation_outlives_its_process(memory: zlog.Store) -> None:
    async def begin() -> None:
        io = AsyncioIo(FaultyStore(memory, lambda _: Fate(effect=5.0, reply=6.0)))
        await Head(io, "orders").epoch_next(Deadline(None))

    async def work() -> None:
        process = Process("short-lived")
        process.start(begin())
        await asyncio.sleep(1)
        process.kill()
        await asyncio.sleep(10)

    run_virtually(work())
    assert epoch(memory) == 1


@pytest.mark.parametrize(
    ("fate", "code", "effects"),
    [
        (AT_ONCE, 0, 1),
        (Fate(reply=None), -errno.ETIMEDOUT, 1),
        (Fate(effect=None), -errno.ETIMEDOUT, 0),
        (Fate(error=errno.EAGAIN), -errno.EAGAIN, 1),
        (Fate(again=0.01), 0, 2),
    ],
)
def test_fate_of_blocking_calls(memory: zlog.Store, fate: Fate, code: int, effects: int) -> None:
    assert FaultyStore(memory, lambda _: fate).execute(*NEXT)[0] == code
    assert epoch(memory) == effects


def test_plan_receives_numbered_operations(memory: zlog.Store) -> None:
    calls: list[StoreCall] = []

    def plan(call: StoreCall) -> Fate:
        calls.append(call)
        return AT_ONCE

    store = FaultyStore(memory, plan)
    store.execute(*NEXT)
    store.submit(CompletionQueue(), 0, [NEXT])
    assert calls == [StoreCall(0, HEAD, "epoch_next"), StoreCall(1, HEAD, "epoch_next")]
