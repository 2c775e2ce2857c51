"""Spaces for asyncio, and how readers share a look at the tail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import zlog
from zlog.objects import LockTimeout, Space, Transaction, aio

from .test_objects import Account


@pytest.fixture
async def async_space(log: zlog.Log) -> AsyncIterator[aio.Space]:
    async with (
        zlog.aio.Log.open(log.store, "log") as own,
        aio.Space.open(own, "space", types=[Account]) as space,
    ):
        yield space


async def test_coroutines_and_iterators_work(async_space: aio.Space) -> None:
    """What only asyncio has. The methods for threads, made from these, are tested with threads."""
    space = async_space
    await space.counter("c").add(5)
    assert await space.transact(lambda txn: txn.counter("c").get()) == 5

    async def body(txn: Transaction) -> None:
        await asyncio.sleep(0)
        txn.counter("c").add(1)

    await space.transact(body)
    async with space.transaction() as txn:
        txn.counter("c").add(1)
    assert await space.counter("c").get() == 7
    with pytest.raises(ValueError, match="attempt"):
        await space.transact(body, attempts=0)
    watch = space.map("m").watch()
    position = await space.map("m").put("c", 3)
    async for event in watch:
        assert event.position == position
        watch.close()
    async with await space.lock("l").acquire("me", lease=60) as held:
        with pytest.raises(LockTimeout):
            await space.election("l").campaign("you", timeout=0.05)
        await held.renew()
    assert await space.lock("l").holder() is None


async def test_cancelled_acquire_withdraws_lock_request(async_space: aio.Space) -> None:
    lock = async_space.lock("l")
    held = await lock.acquire("me", lease=60)
    for turns in range(12):
        asking = asyncio.create_task(lock.acquire("you", lease=60))
        for _ in range(turns):
            await asyncio.sleep(0.0003)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await lock.waiting() == [], turns
    await held.release()
    assert await lock.holder() is None


class Tails:
    """Counts looks at the tail, and may hold them up."""

    def __init__(self, port: Any) -> None:
        self.begun = 0
        self.answered = asyncio.Event()
        self.hold: asyncio.Event | None = None
        self._tail = port.tail
        port.tail = self

    async def __call__(self) -> int:
        self.begun += 1
        tail: int = await self._tail()
        if self.hold is not None:
            self.answered.set()
            await self.hold.wait()
        return tail


async def test_readers_share_tail_query(async_space: aio.Space, space: Space) -> None:
    values = async_space.map("m")
    space.map("m").put("key", "old")
    tails = Tails(async_space._replica.port)
    assert {*await asyncio.gather(*(values.get("key") for _ in range(1000)))} == {"old"}
    assert tails.begun == 2  # the first one begins at once, and the others have the next


async def test_reader_does_not_join_earlier_tail_query(
    async_space: aio.Space, space: Space
) -> None:
    values = async_space.map("m")
    space.map("m").put("key", "old")
    tails = Tails(async_space._replica.port)
    tails.hold = asyncio.Event()
    first = asyncio.create_task(values.get("key"))
    await tails.answered.wait()  # the look has its answer, and waits with it
    space.map("m").put("key", "new")
    others = [asyncio.create_task(values.get("key")) for _ in range(100)]
    await asyncio.sleep(0.01)
    others[0].cancel()  # it would have been the one that looks for all
    await asyncio.sleep(0)
    tails.hold.set()
    assert {*await asyncio.gather(*others[1:])} == {"new"}
    assert await first in ("old", "new")
    assert tails.begun == 2


async def test_failed_tail_query_fails_all_sharing_readers(async_space: aio.Space) -> None:
    port = async_space._replica.port
    with pytest.MonkeyPatch.context() as patch:

        async def fail(*_: object, **__: object) -> int:
            raise zlog.StoreTimeout("no answer")

        patch.setattr(port, "tail", fail)
        reads = (async_space.map("m").get("key") for _ in range(10))
        found = await asyncio.gather(*reads, return_exceptions=True)
        assert all(isinstance(each, zlog.StoreTimeout) for each in found)
    assert await async_space.map("m").get("key") is None


async def test_cancelled_call_leaves_space_usable(async_space: aio.Space) -> None:
    space = async_space
    for i in range(30):
        task = asyncio.create_task(space.counter("c").add_and_get(1))
        for _ in range(i):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert await space.counter("c").get() <= i + 1
    before = await space.counter("c").get()
    assert await space.counter("c").add_and_get(1) == before + 1
