"""Concurrent appends of one event loop travel together, and each gets its own answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

import zlog
from zlog import aio
from zlog._append import gather

from .faulty import FaultyStore, loses_first


@pytest.fixture
async def log(faulty: FaultyStore) -> AsyncIterator[aio.Log]:
    async with await aio.Log.create(faulty, "orders", width=4, timeout=1) as opened:
        yield opened


async def entries(log: aio.Log) -> list[bytes]:
    return [item.data async for item in log.read_range() if isinstance(item, zlog.Entry)]


@pytest.mark.usefixtures("thousands_of_tasks")
async def test_concurrent_appends_share_operations(faulty: FaultyStore, log: aio.Log) -> None:
    before = faulty.operations
    positions = await asyncio.gather(*(log.append(b"%d" % i) for i in range(5000)))
    assert positions == list(range(5000))
    assert faulty.operations - before <= 2 * 4 + 4  # two rounds of one write per object
    assert await entries(log) == [b"%d" % i for i in range(5000)]


@pytest.mark.usefixtures("thousands_of_tasks")
async def test_concurrent_callers_fill_two_equal_rounds(faulty: FaultyStore, log: aio.Log) -> None:
    """So that the store is busy with one while the callers of the other append again."""
    calls = 5
    writes = []

    def count(_: int, method: str) -> None:
        writes.append(method)

    async def append() -> None:
        for _ in range(calls):
            await log.append(b"x")

    await log.append(b"first")
    faulty.fault = count
    await asyncio.gather(*(append() for _ in range(2000)))
    assert writes.count("write") == calls * 2 * 4  # 1000 in a round, on four objects each


async def test_lone_append_is_one_operation(faulty: FaultyStore, log: aio.Log) -> None:
    before = faulty.operations
    await log.append(b"alone")
    assert faulty.operations - before == 1


async def test_append_with_own_timeout_is_sent_alone(faulty: FaultyStore, log: aio.Log) -> None:
    before = faulty.operations
    await asyncio.gather(*(log.append(b"x", timeout=5) for _ in range(3)))
    assert faulty.operations - before == 3


async def test_lost_reply_fails_only_affected_appends(faulty: FaultyStore, log: aio.Log) -> None:
    faulty.fault = loses_first("write")
    results = await asyncio.gather(
        *(log.append(b"%d" % i) for i in range(40)), return_exceptions=True
    )
    lost = [i for i, result in enumerate(results) if isinstance(result, zlog.StoreTimeout)]
    assert lost == list(range(0, 40, 4))  # one object's share
    assert [results[i] for i in range(40) if i % 4] == [i for i in range(40) if i % 4]
    assert await entries(log) == [b"%d" % i for i in range(40)]  # indeterminate: here it landed


async def test_buffer_may_be_reused_immediately(log: aio.Log) -> None:
    buffer = bytearray(b"first")
    task = asyncio.create_task(log.append(buffer))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    buffer[:] = b"later"
    await task
    assert await entries(log) == [b"first"]


async def test_append_cancelled_before_sending_is_not_sent(log: aio.Log) -> None:
    tasks = [asyncio.create_task(log.append(b"%d" % i)) for i in range(10)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(r, asyncio.CancelledError) for r in results] == [True, False] * 5
    assert await entries(log) == [b"%d" % i for i in range(1, 10, 2)]


async def test_an_invalid_entry_does_not_fail_others(log: aio.Log) -> None:
    good = asyncio.create_task(log.append(b"good"))
    with pytest.raises(zlog.EntryTooLarge):
        await log.append(bytes((1 << 20) + 1))
    with pytest.raises(TypeError, match="encode"):
        await log.append("text")  # type: ignore[arg-type]
    assert await good == 0


async def test_appends_beyond_the_waiting_limit_wait(
    faulty: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "_WAITING_BYTES_MAX", 10_000)
    async with await aio.Log.create(faulty, "much", width=4) as log:
        data = bytes(1000)
        tasks = [asyncio.create_task(log.append(data)) for _ in range(100)]
        await asyncio.sleep(0)
        assert log._shared.waiting_bytes == 10_000
        assert await asyncio.gather(*tasks) == list(range(100))


async def test_close_waits_for_appends_in_flight(faulty: FaultyStore) -> None:
    log = await aio.Log.create(faulty, "closing", width=2)
    tasks = [asyncio.create_task(log.append(b"%d" % i)) for i in range(20)]
    await asyncio.sleep(0)
    await log.close()
    assert await asyncio.gather(*tasks) == list(range(20))


@pytest.mark.parametrize("waiting_bytes_max", [10_000, 1 << 20])
async def test_no_append_waits_much_longer_than_its_time_out(
    faulty: FaultyStore,
    monkeypatch: pytest.MonkeyPatch,
    waiting_bytes_max: int,
) -> None:
    """However many rounds are before it: what was not sent in time is not sent at all."""
    monkeypatch.setattr(gather, "ROUND_BYTES_MAX", 1000)
    monkeypatch.setattr(gather, "_WAITING_BYTES_MAX", waiting_bytes_max)
    async with await aio.Log.create(faulty, "slow", width=4, timeout=0.3) as log:
        faulty.fault = lambda _, method: "lose" if method == "write" else None
        began = time.monotonic()
        results = await asyncio.gather(
            *(log.append(bytes(1000)) for _ in range(40)), return_exceptions=True
        )
        assert time.monotonic() - began < 5 * 0.3
        assert all(isinstance(each, zlog.StoreTimeout) for each in results)
        unsent = [each for each in results if "not sent" in str(each)]
        assert len(unsent) > 30
        assert await log.tail() == 40 - len(unsent)
