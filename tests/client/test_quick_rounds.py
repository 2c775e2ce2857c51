"""Rounds of an event loop that need no task, and when a task takes over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

import zlog
from zlog import aio
from zlog._append.append import Appender
from zlog.testing import AT_ONCE, Fate, FaultyStore, StoreCall, run_virtually

from ..support.local_sequencer import LocalSequencer


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Grows with each round that a task sends, by whether its writes had begun."""
    seen: list[bool] = []
    append_round = Appender.append_round

    async def count(self: Appender, *given: Any) -> Sequence[int] | Any:
        seen.append(given[4:] not in ((), (None,)))
        return await append_round(self, *given)

    monkeypatch.setattr(Appender, "append_round", count)
    return seen


async def test_common_round_needs_no_task(
    plain: zlog.Store, sequencer: LocalSequencer, tasks: list[bool]
) -> None:
    async with aio.Log.create(plain, "orders", width=2) as log:
        await log.append(b"takes the log to its sequencer")
        tasks.clear()
        assert await asyncio.gather(*(log.append(b"x") for _ in range(5))) == [*range(1, 6)]
        assert tasks == []
        await log.reconfigure(width=3)
        await log.append(b"takes the sequencer to the new view")
        tasks.clear()
        assert await log.append(b"x") == 7
        assert (tasks, log.view.sequencer) == ([], sequencer.address)


async def test_silent_sequencer_is_left(plain: zlog.Store, sequencer: LocalSequencer) -> None:
    async with aio.Log.create(plain, "orders", sequencer_timeout=0.3) as log:
        await log.append(b"first")
        sequencer.pause()
        assert await asyncio.wait_for(log.append(b"second"), 20) == 1
        assert log.view.sequencer == ""


async def test_round_is_not_sent_again_if_sending_fails(memory: zlog.Store) -> None:
    """One of its writes may have been executed."""
    calls: list[str] = []

    def fail_second(call: StoreCall) -> Fate:
        calls.append(call.method)
        if calls.count("write") == 2:
            raise zlog.StoreUnavailable("no memory left")
        return AT_ONCE

    store = FaultyStore(memory)
    async with aio.Log.create(store, "orders", width=2) as log:
        await log.append(b"first")
        store.plan = fail_second
        appends = [log.append(b"%d" % i) for i in range(2)]
        failed = await asyncio.gather(*appends, return_exceptions=True)
        assert [type(each) for each in failed] == [zlog.StoreUnavailable] * 2
        store.plan = lambda _: AT_ONCE
        assert await log.append(b"last") == 3
        items = [item async for item in log.read_range(hole_timeout=0)]
        assert len([item for item in items if isinstance(item, zlog.Entry)]) == 3


async def test_exclusive_append_fails_if_sending_does(memory: zlog.Store) -> None:
    store = FaultyStore(memory)
    async with aio.Log.create(store, "orders") as log:
        writer = await log.writer()
        assert await writer.append(b"first") == 0

        def fail(call: StoreCall) -> Fate:
            if call.method == "write":
                raise RuntimeError("a bug")
            return AT_ONCE

        store.plan = fail
        with pytest.raises(zlog.StoreTimeout, match="interrupted"):
            await asyncio.wait_for(writer.append(b"lost"), 20)
        store.plan = lambda _: AT_ONCE
        assert await writer.append(b"second") == 1


async def test_exhausted_log_is_reported(memory: zlog.Store) -> None:
    shared = memory.sequencer()
    assert shared is not None
    async with aio.Log.create(memory, "orders") as log:
        await log.append(b"first")
        assert shared.next(log.view.log_id, log.view.epoch, 2**63 - 2) == 1
        with pytest.raises(zlog.errors.LogExhausted):
            await asyncio.wait_for(log.append(b"x"), 20)


@pytest.mark.usefixtures("eager")
async def test_quick_rounds_end_full_stripes(memory: zlog.Store) -> None:
    async with aio.Log.create(memory, "orders", width=1, stripe_records=4) as log:
        for i in range(20):
            assert await log.append(b"x") == i
        assert log.view.live_stripe.start >= 12


@pytest.mark.parametrize("exclusive", [False, True])
def test_task_waits_for_late_reply(tasks: list[bool], exclusive: bool) -> None:
    async def work() -> None:
        with zlog.connect("mem://") as memory:
            store = FaultyStore(memory)
            async with aio.Log.create(store, "orders", width=1) as log:
                await log.append(b"first")
                appending: Any = await log.writer() if exclusive else log
                if exclusive:
                    appends = appending._appends
                    created = appends._create_task
                    appends._create_task = lambda work: (tasks.append(True), created(work))
                tasks.clear()
                late = Fate(reply=0.6)
                store.plan = lambda call: late if call.method == "write" else AT_ONCE
                assert await appending.append(b"late") == 1
                assert tasks == [True]

    run_virtually(work())
