"""Several change a log's width at once, while others write and read, on a slow store."""

from __future__ import annotations

import asyncio
import contextlib
import itertools

import pytest

import zlog
from zlog._base.deadline import Deadline
from zlog._base.log_options import LogOptions
from zlog._base.settings import HandleOptions
from zlog._catalog.head import Head
from zlog._client import LogClient
from zlog._layout.reclaim import reclaim
from zlog._layout.reconfigure import reconfigure
from zlog._lifecycle import create_log
from zlog._native.local import MemoryStore
from zlog._read.iterate import range_reader
from zlog.testing import run_virtually
from zlog.view import objects_of

from .faulty import FaultyStore, Recorder, slow_io

UNITS = (1, 4)
SLOW = (0.01, 0.1)
WRITERS, CHANGERS, ENTRIES = 4, 3, 40


@pytest.mark.parametrize("dying", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_lost_doubled_or_left_behind(
    memory: zlog.Store, seed: int, *, dying: bool
) -> None:
    """With changers that die, too: what they have sent takes effect later all the same."""
    store = Recorder(memory)

    async def work() -> None:
        io = slow_io(store, seed, *SLOW)
        patient = Deadline(None, io.monotonic)
        await create_log(io, "orders", LogOptions(width=4, stripe_records=4), patient)
        settings = HandleOptions(timeout=None, hole_timeout=0.5)
        clients = [await LogClient.open(io, "orders", settings) for _ in range(9)]
        acknowledged: dict[int, bytes] = {}

        async def write(number: int) -> None:
            for turn in range(ENTRIES):
                data = b"%d.%d" % (number, turn)
                client = clients[number]
                (position,) = await client.appender.append([data], client.deadline())
                assert position not in acknowledged
                acknowledged[position] = data

        async def change(number: int) -> None:
            client = clients[WRITERS + number]
            for width, unit in ((2 + number, None), (7, 1 << number), (1 + number, 4)):
                await io.sleep(io.random())
                patience = io.random() if dying else None
                with contextlib.suppress(asyncio.TimeoutError):
                    changed = reconfigure(client.layout, LogOptions(width, unit), client.deadline())
                    await asyncio.wait_for(changed, patience)

        async def read(number: int) -> list[zlog.Entry | zlog.Gap]:
            found: list[zlog.Entry | zlog.Gap] = []
            while len([i for i in found if isinstance(i, zlog.Entry)]) < WRITERS * ENTRIES:
                start = found[-1].position + 1 if found else 0
                if found and isinstance(found[-1], zlog.Gap):
                    start = found[-1].end
                client = clients[WRITERS + CHANGERS + number]
                reader = range_reader(client.reader, client.budget, start, None)
                while (items := await reader.next()) is not None:
                    found += items
            return found

        tasks = [*map(write, range(WRITERS)), *map(change, range(CHANGERS))]
        reads = [asyncio.ensure_future(read(number)) for number in range(2)]
        await asyncio.gather(*tasks)
        orders = await asyncio.gather(*reads)
        assert len(acknowledged) == len(set(acknowledged.values())) == WRITERS * ENTRIES
        for order in orders:
            entries = {i.position: i.data for i in order if isinstance(i, zlog.Entry)}
            assert entries == acknowledged
            assert list(entries) == sorted(entries)

        layout = clients[0].layout
        await layout.refresh(patient)
        await reclaim(layout, patient)
        head = Head(io, "orders")
        state = await head.read(patient)
        assert state.view is not None
        newest, loose = await head.loose_stripes(state.log_id, patient)
        assert [id_ for id_, _ in loose if id_ < newest] == []
        stripes = [*await head.stripes(state.log_id, 0, patient), *state.view.stripes]
        assert all(a.end == b.start for a, b in itertools.pairwise(stripes))
        needed = {ref.name for each in stripes for ref in objects_of("orders", state.log_id, each)}
        assert isinstance(memory, MemoryStore)
        if dying:  # another client may have reclaimed a stripe before the last object was made
            assert all(memory.peek(name) is not None for name in needed)
            return
        assert {name for name in store.names if memory.peek(name) is not None} == needed

    run_virtually(work(), seed)


@pytest.mark.parametrize("seed", range(3))
def test_one_of_many_writers_leaves_a_stripe_that_takes_no_more(
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
