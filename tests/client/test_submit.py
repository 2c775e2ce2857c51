"""Submitted entries: futures instead of callers that wait."""

from __future__ import annotations

import asyncio
import contextvars
import errno
import gc
import threading
from collections.abc import Callable
from concurrent.futures import (
    FIRST_EXCEPTION,
    CancelledError,
    Future,
    ThreadPoolExecutor,
    as_completed,
    wait,
)
from functools import partial
from queue import Queue

import pytest

import zlog
from zlog import ReentrantCall, aio
from zlog._append import gather
from zlog.errors import EntryTooLarge, StoreTimeout
from zlog.testing import AT_ONCE, Fate, FaultyStore, StoreCall, run_virtually


def on(method: str, fate: Fate) -> Callable[[StoreCall], Fate]:
    """Return a plan in which only this method has this fate."""
    return lambda call: fate if call.method == method else AT_ONCE


def test_thread_gets_futures(memory: zlog.Store) -> None:
    with zlog.Log.create(memory, "orders", width=2, entry_bytes_max=100) as log:
        futures = [log.submit(b"%d" % i, tags=["even"] * (i % 2 == 0)) for i in range(10_000)]
        with pytest.raises(EntryTooLarge):
            log.submit(bytes(101))
        log.flush()
        assert all(future.done() for future in futures)
        assert [future.result() for future in futures] == [*range(10_000)]
        assert sum(1 for _ in log.read_range(tags=["even"])) == 5000
        last = log.submit(b"last")
    assert last.result(0) == 10_000  # closing waits
    with pytest.raises(zlog.StoreUnavailable, match="closed"):
        log.submit(b"late").result(0)


def test_thread_waits_for_space_and_gets_errors(
    memory: zlog.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "SUBMITTED_MAX", 2)
    zlog.Log.create(memory, "orders").close()
    began, go_on = threading.Event(), threading.Event()

    def lose(call: StoreCall) -> Fate:
        if call.method != "write":
            return AT_ONCE
        began.set()
        assert go_on.wait(30)
        return Fate(reply=None)

    with zlog.Log.open(FaultyStore(memory, lose), "orders", timeout=0.3) as log:
        futures = [log.submit(b"0")]
        assert began.wait(30)
        futures += [log.submit(b"1"), log.submit(b"2")]
        with pytest.raises(StoreTimeout, match="not sent"):
            log.submit(b"3", timeout=0.05)
        go_on.set()
    for future in futures:
        with pytest.raises(StoreTimeout, match="cannot append"):
            future.result(0)
    with zlog.Log.open(memory, "orders") as log:
        assert [log.read(i).data for i in range(log.tail())] == [b"0", b"1", b"2"]


def test_callback_must_not_wait_for_other_entries(memory: zlog.Store) -> None:
    zlog.Log.create(memory, "orders").close()
    added = threading.Event()
    seen: Queue[BaseException | None] = Queue()

    def hold(call: StoreCall) -> Fate:
        assert call.method != "write" or added.wait(30)
        return AT_ONCE

    def wait(_: object) -> None:
        for call in (log.flush, log.close):
            try:
                call()
                seen.put(None)
            except ReentrantCall as error:
                seen.put(error)

    with zlog.Log.open(FaultyStore(memory, hold), "orders") as log:
        log.submit(b"0").add_done_callback(wait)
        added.set()
        assert [type(seen.get(timeout=30)) for _ in range(2)] == [ReentrantCall] * 2
        assert log.submit(b"1").result(30) == 1


def test_future_of_a_thread_is_like_others(memory: zlog.Store) -> None:
    zlog.Log.create(memory, "orders").close()
    began, go_on, called = threading.Event(), threading.Event(), Queue[object]()

    def hold(call: StoreCall) -> Fate:
        if call.method != "write":
            return AT_ONCE
        began.set()
        assert go_on.wait(30)
        return Fate(effect=None, error=errno.EIO) if called.qsize() else AT_ONCE

    async def wrapped(future: Future[int]) -> int:
        return await asyncio.wrap_future(future)

    with zlog.Log.open(FaultyStore(memory, hold), "orders") as log, ThreadPoolExecutor() as pool:
        first = log.submit(b"0")
        assert began.wait(30)
        assert not first.cancel()
        unwanted, second = log.submit(b"unwanted"), log.submit(b"1")
        assert unwanted.cancel()
        assert unwanted.cancel()
        others = [
            pool.submit(second.result, 30),
            pool.submit(lambda: wait([second, unwanted], 30).done == {second, unwanted}),
            pool.submit(lambda: next(as_completed([second], 30)).result()),
            pool.submit(asyncio.run, wrapped(second)),
        ]
        second.add_done_callback(called.put)
        go_on.set()
        assert [each.result(30) for each in others] == [1, True, 1, 1]
        assert called.get(timeout=30) is second
        second.add_done_callback(called.put)
        assert called.qsize() == 1
        failed = log.submit(b"3")
        assert wait([failed], 30, FIRST_EXCEPTION).done == {failed}
        with pytest.raises(zlog.ZlogError):
            failed.result()
        with pytest.raises(CancelledError):
            unwanted.result(0)


def test_task_gets_futures() -> None:
    async def work() -> None:
        with zlog.connect("mem://") as memory:
            store = FaultyStore(memory)
            async with aio.Log.create(store, "orders", width=2, timeout=1) as log:
                first, withdrawn, _ = [await log.submit(b"%d" % i) for i in range(3)]
                withdrawn.cancel()
                await log.flush()
                assert first.result() == 0
                assert [(await log.read(i)).data for i in range(2)] == [b"0", b"2"]
                store.plan = on("write", Fate(effect=None, reply=None))
                lost = [await log.submit(b"x") for _ in range(1 << 16)]
                await asyncio.sleep(0)
                lost += [await log.submit(b"x") for _ in range(2 * 4096)]  # two rounds are gone
                with pytest.raises(StoreTimeout, match="not sent"):
                    await log.submit(b"no space", timeout=0.1)
                with pytest.raises(StoreTimeout):
                    await log.flush(timeout=0.1)
                await log.flush(timeout=60)
                assert all(isinstance(future.exception(), StoreTimeout) for future in lost)

    run_virtually(work())


def test_future_of_a_task_is_like_one_of_asyncio() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="no name")
    called: list[object] = []

    def call(what: str, future: asyncio.Future[int]) -> None:
        called.append((what, future.result(), name.get()))

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: called.append(context["exception"]))
        with zlog.connect("mem://") as memory:
            store = FaultyStore(memory)
            async with aio.Log.create(store, "orders", timeout=1) as log:
                first = await log.submit(b"0")
                with pytest.raises(asyncio.InvalidStateError):
                    first.result()
                unwanted = partial(call, "unwanted")
                for what in (unwanted, partial(call, "one"), unwanted, partial(call, "two")):
                    first.add_done_callback(what)
                name.set("later")
                assert first.remove_done_callback(unwanted) == 2
                assert asyncio.isfuture(first)
                assert first.get_loop() is loop
                both = [asyncio.create_task(asyncio.wait_for(first, 5)) for _ in range(2)]
                assert await asyncio.gather(first, asyncio.shield(first), *both) == [0] * 4
                assert await first == 0
                assert first.exception() is None
                first.add_done_callback(partial(call, "late"))
                await asyncio.sleep(0.01)
                at_first = [("one", 0, "no name"), ("two", 0, "no name")]
                assert called == [*at_first, ("late", 0, "later")]
                cancelled = await log.submit(b"cancelled")
                waiting = asyncio.gather(cancelled)
                assert cancelled.cancel("enough")
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                assert cancelled.cancelled()
                assert not cancelled.cancel()
                store.plan = on("write", Fate(effect=None, error=errno.EIO))
                seen, _ = await log.submit(b"1"), await log.submit(b"2")
                with pytest.raises(zlog.ZlogError):
                    await seen
                called.clear()

    asyncio.run(work())
    gc.collect()
    assert [isinstance(each, zlog.ZlogError) for each in called] == [True]
