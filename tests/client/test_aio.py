"""The same log for asyncio: many tasks at once, on every host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeVar

import pytest

import zlog
from zlog import Gap, GapKind, aio

from ..native.support import run

Item = TypeVar("Item")


@pytest.fixture
async def log(store: zlog.Store) -> AsyncIterator[aio.Log]:
    async with await aio.Log.create(store, "orders", width=4, hole_timeout=0.05) as opened:
        yield opened


async def items_of(iterator: AsyncIterator[Item]) -> list[Item]:
    return [item async for item in iterator]


async def test_other_methods_work(memory: zlog.Store) -> None:
    """The log for threads is generated from this one, and has the tests of what each does."""
    async with aio.Log.create(memory, "orders", width=2, hole_timeout=0.01) as log:
        await log.append_many([b"%d" % i for i in range(8)], tags_each=[["x"], []] * 4)
        await log.trim(5)
        await log.trim_to(2)
        cursor = await log.cursor("billing", create="earliest")
        assert isinstance(cursor, aio.Cursor)
        await cursor.commit(4)
        assert (cursor.name, cursor.position, await cursor.lag()) == ("billing", 4, 4)
        assert await log.earliest() == 2
        await cursor.reset("latest")
        assert await log.cursors() == [await cursor.state()]
        await cursor.remove()
        items = await items_of(log.read_range(0, 6))
        assert (items[0], items[-1]) == (Gap(0, 2, GapKind.TRIMMED), Gap(5, 6, GapKind.TRIMMED))
        (columns,) = [each async for each in log.read_columns(2, indexes=[1], with_data=False)]
        assert columns.positions.tolist() == [3, 7]
        assert [each async for each in log.read_columns(2, indexes=[])] == []
        assert not len(log._client.io.completions)  # for the answers to no calls
        assert [each.position for each in await items_of(log.read_range(2, tags=["x"]))] == [
            2,
            4,
            6,
        ]
        stream = log.stream("x")
        assert (await stream.first(), await log.stream("none").tail()) == (await log.read(2), 0)
        assert await stream.append(b"of a stream", tags=["y"]) == 8
        assert (await stream.last(), await stream.tail()) == (await log.read(8), 9)
        async for item in stream.follow(3):
            assert item.position == 4
            break
        (position,) = await log.reserve()
        await log.write(position, b"reserved")
        assert await log.append_once([b"delivered"], producer="query", sequence=1) == 1
        await log.complete_sequences("query", before=2)
        (producer,) = await log.producers()
        assert (producer.name, producer.sequence, producer.parts) == ("query", 2, 0)
        await log.forget_producer("query")
        assert (await log.position_map(cells=1)).tail == 11
        assert ((await log.stat()).entries, await log.find_time(0)) == (8, 2)
        await log.set_retention(zlog.Retention(entries=5))
        assert (log.retention.entries, await log.apply_retention()) == (5, 5)
        assert len(await log.stripes()) == 1
        assert len(await log.views()) > 1
        assert await items_of(log.check()) == []
        await log.promote()  # it is no mirror, so this changes nothing
        async with log.writer("ann") as writer:
            assert await writer.append(b"exclusive") == 11
    assert await aio.Log.list(memory) == ["orders"]
    await aio.Log.remove(memory, "orders")
    assert await aio.Log.list(memory) == []


async def test_async_with_closes_at_its_end(store_url: str) -> None:
    async def work(name: str, error: Exception | None = None) -> None:
        async with aio.connect(store_url) as store, aio.Log.create(store, name) as log:
            assert await log.append(b"x") == 0
            opened.append((store, log))
            if error is not None:
                raise error

    opened: list[tuple[zlog.Store, aio.Log]] = []
    await work("orders")
    with pytest.raises(KeyError):
        await work("others", KeyError())
    for store, log in opened:
        for use in (log.tail(), aio.Log.list(store)):
            with pytest.raises(zlog.StoreUnavailable, match="closed"):
                await use


async def test_an_awaited_handle_stays_open(store_url: str) -> None:
    """By any of asyncio's ways to wait for a coroutine."""
    store = await asyncio.create_task(aio.connect(store_url))
    log = await asyncio.wait_for(aio.Log.create(store, "orders"), 30)
    (same,) = await asyncio.gather(aio.Log.open(store, "orders"))
    assert await log.append(b"x") == 0
    assert (await same.read(0)).data == b"x"
    await same.close()
    await log.close()
    store.close()


async def test_a_failed_async_with_leaves_nothing_open(tmp_path: Path) -> None:
    with pytest.raises(zlog.StoreUnavailable, match="there is no store"):
        async with aio.connect(tmp_path, create=False):
            pass
    with zlog.connect("mem://") as store:
        with pytest.raises(zlog.LogNotFound):
            async with aio.Log.open(store, "orders"):
                pass
        aio.Log.open(store, "orders").close()  # as of a coroutine that is not awaited any more


def test_handles_share_file_descriptors() -> None:
    """Two thousand of them, where a process may have sixty-four; and none is left behind."""
    code = """
        import asyncio, os, resource, zlog

        def descriptors():
            return len(os.listdir("/proc/self/fd"))

        async def work(store):
            before = descriptors()
            logs = [await zlog.aio.Log.open(store, "orders") for _ in range(2000)]
            assert descriptors() == before + 1
            positions = await asyncio.gather(*(log.append(b"x") for log in logs))
            assert sorted(positions) == [*range(2000)]
            for log in logs[1:]:
                await log.close()
            assert await logs[0].tail() == 2000
            assert descriptors() == before + 1
            await logs[0].close()
            assert descriptors() == before

        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        with zlog.connect("mem://") as store:
            zlog.Log.create(store, "orders")
            asyncio.run(work(store))
        print("done")
    """
    assert run(code).strip() == "done"


async def test_closing_handle_keeps_calls_of_others(memory: zlog.Store) -> None:
    async with aio.Log.create(memory, "orders") as first, aio.Log.open(memory, "orders") as other:
        under_way = [asyncio.ensure_future(log.append_many([b"x"] * 100)) for log in (other, first)]
        await asyncio.sleep(0)
        await first.close()
        assert len(await under_way[0]) == 100
        await asyncio.wait(under_way)
        assert await other.tail() >= 100
