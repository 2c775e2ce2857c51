"""The virtual loop, its processes and its network keep their word."""

from __future__ import annotations

import asyncio

import pytest

from zlog.testing import Network, Process, Stuck, VirtualLoop, run_virtually

WHERE = ("host", 1)


def network() -> Network:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.network


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


async def serve() -> None:
    loop = asyncio.get_running_loop()
    listening = network().bind(*WHERE)
    await loop.create_server(Echo, sock=listening)  # type: ignore[call-overload]
    await asyncio.sleep(1e9)


async def served() -> Process:
    """A process that echoes, and listens by now."""
    process = Process("server")
    process.start(serve())
    await asyncio.sleep(0.01)
    return process


def test_endless_wait_is_detected() -> None:
    async def work() -> None:
        await asyncio.get_running_loop().create_future()

    loop = VirtualLoop()
    with pytest.raises(Stuck, match="no timer"):
        loop.run_until_complete(work())
    loop.close()


def test_busy_loop_is_detected() -> None:
    async def work() -> None:
        while True:  # noqa: ASYNC110 - that is the point
            await asyncio.sleep(0)

    with pytest.raises(Stuck, match="run without ever waiting"):
        run_virtually(work())


def test_seed_determines_task_order() -> None:
    async def work() -> list[int]:
        order: list[int] = []

        async def note(number: int) -> None:
            order.append(number)

        await asyncio.gather(*(note(number) for number in range(10)))
        return order

    orders = [tuple(run_virtually(work(), seed)) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[2]) == list(range(10))


def test_paused_and_killed_processes_stop_running() -> None:
    ticks: list[float] = []

    async def tick() -> None:
        try:
            while True:
                await asyncio.sleep(1)
                ticks.append(asyncio.get_running_loop().time())
        finally:
            ticks.append(-1)

    async def work() -> None:
        process = Process("clock")
        process.start(tick())
        await asyncio.sleep(2.5)
        process.pause()
        await asyncio.sleep(10)
        assert len(ticks) == 2
        process.resume()
        await asyncio.sleep(0.1)
        assert len(ticks) == 3
        process.kill()
        process.resume()
        await asyncio.sleep(10)
        assert len(ticks) == 3

    run_virtually(work())


def test_network_cut_blocks_data_until_repaired() -> None:
    async def ask() -> bytes:
        reader, writer = await asyncio.open_connection(*WHERE)
        writer.write(b"a")
        await reader.readexactly(1)
        network().cut("client", "server")
        writer.write(b"b")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(reader.read(1), 100)
        network().restore()
        late = await reader.read(1)
        writer.close()
        return late

    async def work() -> bytes:
        await served()
        return await Process("client").start(ask())

    assert run_virtually(work()) == b"b"


def test_killed_process_closes_its_connections_and_listener() -> None:
    async def work() -> None:
        server = await served()
        reader, _ = await asyncio.open_connection(*WHERE)
        server.kill()
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*WHERE)

    run_virtually(work())
