"""What ``log.append(data)`` returns is a coroutine in every respect that asyncio knows."""

from __future__ import annotations

import asyncio
import collections.abc
import contextvars
import warnings
from collections.abc import AsyncIterator

import pytest

import zlog
from zlog import aio

from .faulty import FaultyStore


@pytest.fixture
async def log(faulty: FaultyStore) -> AsyncIterator[aio.Log]:
    async with await aio.Log.create(faulty, "orders", width=2, timeout=0.5) as opened:
        yield opened


async def test_append_is_a_coroutine(log: aio.Log) -> None:
    one = log.append(b"0")
    assert asyncio.iscoroutine(one)
    assert isinstance(one, collections.abc.Coroutine)
    assert not asyncio.isfuture(one)
    assert await one == 0
    task = asyncio.create_task(log.append(b"1"))
    assert "append" in repr(task)
    assert await task == 1
    assert await asyncio.ensure_future(log.append(b"2")) == 2
    assert await asyncio.gather(log.append(b"3"), log.append(b"4")) == [3, 4]
    assert await asyncio.wait_for(log.append(b"5"), 1) == 5
    assert await asyncio.shield(log.append(b"6")) == 6
    assert [await each for each in asyncio.as_completed([log.append(b"7")])] == [7]
    loop = asyncio.get_running_loop()

    def elsewhere() -> int:
        return asyncio.run_coroutine_threadsafe(log.append(b"8"), loop).result(5)

    assert await asyncio.to_thread(elsewhere) == 8


async def test_append_starts_when_awaited(faulty: FaultyStore, log: aio.Log) -> None:
    before = faulty.operations
    later = log.append(b"later")
    await asyncio.sleep(0.01)
    assert faulty.operations == before
    assert await log.append(b"first") == 0
    assert await later == 1


async def test_an_append_that_is_never_awaited_warns(log: aio.Log) -> None:
    with pytest.warns(RuntimeWarning, match="never awaited"):
        log.append(b"lost")  # type: ignore[unused-coroutine]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log.append(b"closed").close()


async def test_append_is_awaited_only_once(log: aio.Log) -> None:
    append = log.append(b"0")
    assert await append == 0
    with pytest.raises(RuntimeError, match="awaited only once"):
        await append
    again = log.append(b"1")
    task = asyncio.create_task(again)
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="awaited only once"):
        await again
    assert await task == 1
    assert await log.tail() == 2


async def test_a_cancelled_append_does_not_block_others(faulty: FaultyStore, log: aio.Log) -> None:
    """The entry was sent: whether it is in the log is left open, and here it is."""
    await log.append(b"0")
    faulty.fault = lambda _, method: "lose" if method == "write" else None
    with pytest.raises((TimeoutError, asyncio.TimeoutError)):
        await asyncio.wait_for(log.append(b"1"), 0.05)
    task = asyncio.create_task(log.append(b"2"))
    await asyncio.sleep(0.05)
    task.cancel("enough")
    with pytest.raises(asyncio.CancelledError):
        await task
    faulty.fault = lambda *_: None
    assert await log.append(b"3") == 3


async def test_task_keeps_its_context(log: aio.Log) -> None:
    name: contextvars.ContextVar[int] = contextvars.ContextVar("name")

    async def append(number: int) -> int:
        name.set(number)
        await log.append(b"x")
        await log.append(b"y")
        return name.get()

    assert await asyncio.gather(*(append(i) for i in range(10))) == list(range(10))


@pytest.mark.usefixtures("thousands_of_tasks")
async def test_tasks_resume_in_call_order(faulty: FaultyStore) -> None:
    order: list[int] = []

    async def append(number: int) -> None:
        await log.append(b"x")
        order.append(number)

    async with await aio.Log.create(faulty, "orders") as log:
        await asyncio.gather(*(append(i) for i in range(5000)))
    assert order == list(range(5000))


def test_a_task_that_ends_the_loop_does_not_lose_other_tasks(memory: zlog.Store) -> None:
    """As Ctrl-C does: the others go on when the loop runs again, to be cancelled for example."""
    done: list[int] = []

    async def append(log: aio.Log, number: int) -> None:
        await log.append(b"x")
        if number == 1:
            raise KeyboardInterrupt
        done.append(number)

    loop = asyncio.new_event_loop()
    log = loop.run_until_complete(aio.Log.create(memory, "orders"))
    tasks = [loop.create_task(append(log, number)) for number in range(5)]
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(asyncio.wait(tasks))
    assert done == [0]
    loop.run_until_complete(asyncio.wait(tasks))
    assert done == [0, 2, 3, 4]
    assert isinstance(tasks[1].exception(), KeyboardInterrupt)
    loop.run_until_complete(log.close())
    loop.close()


async def test_an_append_can_be_driven_without_a_task(log: aio.Log) -> None:
    append = log.append(b"0")
    assert append.send(None) is append
    assert await log.append(b"1") == 1
    with pytest.raises(StopIteration) as stop:
        append.send(None)
    assert stop.value.value == 0
