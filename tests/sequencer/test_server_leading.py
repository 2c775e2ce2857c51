"""The server of a sequencer that begins to lead, steps down, or hands its logs over."""

from __future__ import annotations

import asyncio

from zlog._sequencer.frames import Code, Kind
from zlog.errors import NotLeader
from zlog.seqr.namespaces import Namespace

from .fakes import AUDIT, ORDERS, open_request, request
from .test_server import SOON, opened, serving  # noqa: F401  # serving is a fixture

HERE = Namespace(ORDERS.pool, ORDERS.namespace)


async def test_adopted_log_is_active_before_clients_connect(serving, store):  # noqa: F811
    async with serving(store) as (server, connect):
        await asyncio.to_thread(server.call, "adopt", ORDERS)
        await asyncio.to_thread(server.call, "adopt", ORDERS)
        await opened(connect)
        assert store.takeovers == 1


async def test_cancelled_adoption_still_completes(
    serving,  # noqa: F811
    store,
):
    """A take-over may find that its sequencer leads no more; the log must not hang for ever."""
    store.shut(ORDERS)
    async with serving(store) as (server, connect):

        async def give_up() -> None:
            adopting = asyncio.ensure_future(server._server.adopt(ORDERS))
            await asyncio.sleep(0)
            adopting.cancel()

        asyncio.run_coroutine_threadsafe(give_up(), server._loop)
        await asyncio.to_thread(store.wait_for_takeovers, 1)
        store.errors.append(NotLeader("another leads"))
        wire = await connect()
        wire.send(open_request())
        store.open(ORDERS)
        assert (await wire.reply()).code == Code.NOT_LEADER
        wire.send(open_request())
        assert (await wire.reply()).code == Code.OK


async def test_stepping_down_answers_pending_waits(serving, store):  # noqa: F811
    async with serving(store) as (server, connect):
        orders, audit = await opened(connect), await opened(connect, AUDIT)
        for wire in (orders, audit):
            wire.send(request(Kind.WAIT, 5, a=10, b=60_000))
        await asyncio.to_thread(server.call, "step_down", HERE)
        assert (await orders.reply()).code == Code.STALE_EPOCH
        await asyncio.to_thread(server.call, "look_again")
        assert (await audit.reply()).code == Code.NOT_LEADER


async def test_stop_does_not_release_inherited_logs(serving, store):  # noqa: F811
    async with serving(store) as (server, connect):
        wires = [await opened(connect), await opened(connect, AUDIT)]
        await asyncio.to_thread(server.call, "halt", cut=True)
        for wire in wires:
            assert await wire.ended()
        assert store.released == []
        await asyncio.wait_for(asyncio.to_thread(server.stop, {HERE}), SOON)
        assert store.released == [AUDIT]
