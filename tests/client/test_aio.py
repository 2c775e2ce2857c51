"""The same log for asyncio: many tasks at once, on every host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import zlog
from zlog import Entry, Gap, GapKind, aio

from ..native.support import run


@pytest.fixture
async def log(store: zlog.Store) -> AsyncIterator[aio.Log]:
    async with await aio.Log.create(store, "orders", width=4, hole_timeout=0.05) as opened:
        yield opened


async def items_of(iterator: AsyncIterator[Entry | Gap]) -> list[Entry | Gap]:
    return [item async for item in iterator]


async def test_concurrent_appends_get_positions_of_their_own(log: aio.Log) -> None:
    positions = await asyncio.gather(*(log.append(b"%d" % i) for i in range(300)))
    assert sorted(positions) == list(range(300))
    items = await items_of(log.read_range())
    assert [item.position for item in items] == list(range(300))
    by_position = {item.position: item.data for item in items if isinstance(item, Entry)}
    assert [by_position[p] for p in positions] == [b"%d" % i for i in range(300)]


async def test_both_faces_see_one_log(store: zlog.Store, log: aio.Log) -> None:
    await log.append_many([b"a", b"b"])
    other = zlog.Log.open(store, "orders")
    assert other.append(b"c") == 2
    assert (await log.read(2)).data == b"c"
    assert await log.tail() == 3


async def test_follow_yields_what_comes(log: aio.Log) -> None:
    async def read(count: int) -> list[bytes]:
        seen: list[bytes] = []
        async for item in log.follow():
            assert isinstance(item, Entry)
            seen.append(item.data)
            if len(seen) == count:
                break
        return seen

    readers = [asyncio.create_task(read(40)) for _ in range(3)]
    for i in range(40):
        await log.append(b"%d" % i)
    for reader in readers:
        assert await asyncio.wait_for(reader, 30) == [b"%d" % i for i in range(40)]


async def test_errors_are_the_same(store: zlog.Store, log: aio.Log) -> None:
    with pytest.raises(zlog.NotWritten):
        await log.read(0)
    with pytest.raises(zlog.LogExists):
        await aio.Log.create(store, "orders")
    with pytest.raises(zlog.LogNotFound):
        await aio.Log.open(store, "nothing")
    with pytest.raises(zlog.BeyondTail):
        await log.trim_to(1)


async def test_the_other_commands(store: zlog.Store, log: aio.Log) -> None:
    await log.append_many([b"%d" % i for i in range(8)])
    await log.trim(5)
    await log.trim_to(2)
    items = await items_of(log.read_range(0, 6))
    assert items[0] == Gap(0, 2, GapKind.TRIMMED)
    assert items[-1] == Gap(5, 6, GapKind.TRIMMED)
    assert (await log.stat()).entries == 5
    assert len(await log.views()) >= 1
    assert [finding async for finding in log.check()] == []
    assert await aio.Log.list(store) == ["orders"]
    await aio.Log.remove(store, "orders")
    assert await aio.Log.list(store) == []


async def test_a_cancelled_append_leaves_a_log_that_goes_on(log: aio.Log) -> None:
    tasks = [asyncio.create_task(log.append(b"%d" % i)) for i in range(50)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    position = await log.append(b"last")
    items = await items_of(log.read_range())
    assert isinstance(items[-1], Entry)
    assert items[-1].position == position
    data = [item.data for item in items if isinstance(item, Entry)]
    assert len(set(data)) == len(data)


async def test_connect_opens_a_store_off_the_loop(store_url: str) -> None:
    with await aio.connect(store_url) as store:
        assert await aio.Log.list(store) == []


async def test_what_is_entered_is_closed_at_the_end(store_url: str) -> None:
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


async def test_what_is_awaited_stays_open(store_url: str) -> None:
    """By any of asyncio's ways to wait for a coroutine."""
    store = await asyncio.create_task(aio.connect(store_url))
    log = await asyncio.wait_for(aio.Log.create(store, "orders"), 30)
    (same,) = await asyncio.gather(aio.Log.open(store, "orders"))
    assert await log.append(b"x") == 0
    assert (await same.read(0)).data == b"x"
    await same.close()
    await log.close()
    store.close()


async def test_what_can_t_be_entered_leaves_nothing_open(tmp_path: Path) -> None:
    with pytest.raises(zlog.StoreUnavailable, match="there is no store"):
        async with aio.connect(tmp_path, create=False):
            pass
    with zlog.connect("mem://") as store:
        with pytest.raises(zlog.LogNotFound):
            async with aio.Log.open(store, "orders"):
                pass
        aio.Log.open(store, "orders").close()  # as of a coroutine that is not awaited any more


def test_a_loop_runs_it() -> None:
    with asyncio.run(aio.connect("mem://")) as store:
        assert zlog.Log.list(store) == []


def test_handles_take_no_descriptor_each() -> None:
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


async def test_closing_a_handle_leaves_the_others_calls_alone(memory: zlog.Store) -> None:
    async with aio.Log.create(memory, "orders") as first, aio.Log.open(memory, "orders") as other:
        under_way = [asyncio.ensure_future(log.append_many([b"x"] * 100)) for log in (other, first)]
        await asyncio.sleep(0)
        await first.close()
        assert len(await under_way[0]) == 100
        await asyncio.wait(under_way)
        assert await other.tail() >= 100
