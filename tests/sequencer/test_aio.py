"""The asyncio client under many tasks, which share one connection."""

from __future__ import annotations

import asyncio

import pytest

from zlog._base.deadline import Deadline
from zlog._sequencer import AsyncioSequencer
from zlog.errors import SequencerTimeout, SequencerUnavailable

from .fakes import AUDIT, ORDERS


def deadline(seconds: float = 10.0) -> Deadline:
    return Deadline(seconds)


@pytest.fixture
async def client(server):
    client = AsyncioSequencer(server.address)
    yield client
    await client.close()


@pytest.mark.usefixtures("thousands_of_tasks")
async def test_tasks_share_connection_and_get_distinct_positions(client, store):
    grants = await asyncio.gather(*(client.next(ORDERS, 2, 0, deadline()) for _ in range(3000)))
    assert sorted(grant.position for grant in grants) == list(range(0, 6000, 2))
    assert store.takeovers == 1
    status = await client.status(deadline())
    assert status["connections"] == 1
    assert status["requests"] == 3003  # HELLO, one OPEN, 3000 NEXT, STATUS


async def test_cancelled_call_does_not_affect_others(client, store):
    store.shut(ORDERS)
    first = asyncio.ensure_future(client.next(ORDERS, 1, 0, deadline()))
    second = asyncio.ensure_future(client.next(ORDERS, 1, 0, deadline()))
    await asyncio.to_thread(store.wait_for_takeovers, 1)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    store.open(ORDERS)
    assert (await second).epoch == 1


async def test_slow_open_does_not_delay_other_logs(client, store):
    store.shut(ORDERS)
    slow = asyncio.ensure_future(client.next(ORDERS, 1, 0, deadline()))
    impatient = asyncio.ensure_future(client.next(ORDERS, 1, 0, deadline(0.05)))
    assert (await client.next(AUDIT, 1, 0, deadline())).position == 0
    with pytest.raises(SequencerTimeout):
        await impatient
    store.open(ORDERS)
    assert (await slow).position == 0


async def test_close_ends_pending_waits(client):
    await client.open(ORDERS, 0, deadline())
    waiting = asyncio.ensure_future(client.wait(ORDERS, 0, 10**9, 60.0, deadline(60)))
    for _ in range(2):  # the second one is sent after the WAIT
        await client.status(deadline())
    await client.close()
    with pytest.raises(SequencerUnavailable):
        await waiting
