"""The clients of the sequencer that processes share through an embedded store."""

from __future__ import annotations

import asyncio
import time

import pytest

from zlog._base.deadline import Deadline
from zlog._base.sequencer import Grant
from zlog._native.local import SharedSequencer
from zlog._sequencer import AsyncioSharedSequencer, SharedSequencerClient
from zlog.errors import SequencerUnavailable, StaleEpoch

from .fakes import ORDERS

FOREVER = Deadline(None)


@pytest.fixture
def shared():
    shared = SharedSequencer()
    shared.activate(ORDERS.log_id, 3, 10)
    return shared


@pytest.fixture(params=[SharedSequencerClient, AsyncioSharedSequencer])
def client(request, shared):
    return request.param(shared)


async def test_client_grants_positions_in_active_epoch(client):
    assert await client.next(ORDERS, 4, 3, FOREVER) == Grant(3, 10)
    assert await client.tail(ORDERS, 3, FOREVER) == Grant(3, 14)


@pytest.mark.parametrize("epoch", [2, 4])
async def test_client_refuses_other_epochs(client, epoch):
    with pytest.raises(StaleEpoch):
        await client.next(ORDERS, 1, epoch, FOREVER)
    with pytest.raises(StaleEpoch):
        await client.tail(ORDERS, epoch, FOREVER)
    with pytest.raises(StaleEpoch):
        await client.wait(ORDERS, epoch, 0, 1.0, FOREVER)


@pytest.mark.parametrize("count", [0, 65537])
async def test_invalid_grant_count_is_refused(client, count):
    with pytest.raises(ValueError, match="positions"):
        await client.next(ORDERS, count, 3, FOREVER)


async def test_open_does_not_activate_log(client):
    with pytest.raises(SequencerUnavailable, match="is not active"):
        await client.open(ORDERS, 0, FOREVER)


async def test_wait_returns_once_tail_passed(client):
    assert await client.wait(ORDERS, 3, 9, 5.0, FOREVER) == Grant(3, 10)


async def test_wait_ends_at_timeout(client):
    began = time.monotonic()
    assert await client.wait(ORDERS, 3, 10, 0.05, FOREVER) is None
    assert await client.wait(ORDERS, 3, 10, 60.0, Deadline(0.05)) is None
    assert 0.1 <= time.monotonic() - began < 5


async def test_status_and_repeated_close_succeed(client):
    assert await client.status(FOREVER) == {"address": "store:"}
    await client.close()
    await client.close()


async def test_waiting_tasks_do_not_block_event_loop(shared):
    client = AsyncioSharedSequencer(shared)
    waiting = [asyncio.ensure_future(client.wait(ORDERS, 3, 10, 10.0, FOREVER)) for _ in range(20)]
    await asyncio.sleep(0.05)
    await client.next(ORDERS, 1, 3, FOREVER)
    assert await asyncio.gather(*waiting) == [Grant(3, 11)] * 20
    await client.close()


async def test_new_epoch_ends_waiting_task(shared):
    client = AsyncioSharedSequencer(shared)
    waiting = asyncio.ensure_future(client.wait(ORDERS, 3, 10, 10.0, FOREVER))
    await asyncio.sleep(0.05)
    shared.activate(ORDERS.log_id, 4, 10)
    with pytest.raises(StaleEpoch):
        await waiting
    await client.close()
