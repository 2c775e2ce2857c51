"""The server over real sockets, with take-overs that the test controls."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket

import pytest

from zlog._sequencer.frames import Code, Kind, ReplyReader
from zlog.errors import StoreUnavailable
from zlog.seqr.limits import Limits

from .fakes import AUDIT, HELLO, ORDERS, ServerThread, open_request, request

SOON = 5.0


class Wire:
    """One raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._replies = ReplyReader()
        self._ready: list = []

    @classmethod
    async def to(cls, where, receive_bytes: int) -> Wire:
        connected = socket.socket()
        if receive_bytes:  # else the kernel takes megabytes from a peer that does not read
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connected.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connected, where)
        return cls(*await asyncio.open_connection(sock=connected))

    def send(self, *requests: bytes) -> None:
        self.writer.write(b"".join(requests))

    async def replies(self, count: int) -> list:
        while len(self._ready) < count:
            data = await asyncio.wait_for(self.reader.read(1 << 16), SOON)
            assert data, f"the connection ended after {len(self._ready)} replies"
            self._ready += self._replies.feed(data)
        replies, self._ready = self._ready[:count], self._ready[count:]
        return replies

    async def reply(self):
        return (await self.replies(1))[0]

    async def ended(self) -> bool:
        with contextlib.suppress(ConnectionError):
            return await asyncio.wait_for(self.reader.read(), SOON) == b""
        return True

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


@pytest.fixture(params=["asyncio", "uvloop"])
def serving(request):
    """Context manager of a server, and a function that connects to it.

    Every test runs with both event loops: the optional one differs in many small ways.
    """
    loops = asyncio if request.param == "asyncio" else pytest.importorskip("uvloop")

    @contextlib.asynccontextmanager
    async def serving(store, limits=None):
        server = ServerThread(store, limits=limits, new_loop=loops.new_event_loop)
        wires = []

        async def connect(*, greet: bool = True, receive_bytes: int = 0) -> Wire:
            wire = await Wire.to(server.where, receive_bytes)
            wires.append(wire)
            if greet:
                wire.send(HELLO)
                assert (await wire.reply()).code == Code.OK
            return wire

        try:
            yield server, connect
        finally:
            await asyncio.to_thread(server.stop)
            for wire in wires:
                await wire.close()

    return serving


async def opened(connect, log=ORDERS) -> Wire:
    wire = await connect()
    wire.send(open_request(log))
    assert (await wire.reply()).code == Code.OK
    return wire


async def test_concurrent_takeovers_are_bounded(serving, store):
    store.shut(AUDIT)
    async with serving(store, Limits(activations_max=1)) as (_, connect):
        wire = await connect()
        wire.send(open_request(AUDIT, 1), open_request(ORDERS, 2))
        await asyncio.to_thread(store.wait_for_takeovers, 1)
        wire.send(request(Kind.STATUS, 3))
        assert (await wire.reply()).request == 3
        assert store.takeovers == 1
        store.open(AUDIT)
        assert [reply.request for reply in await wire.replies(2)] == [1, 2]


async def test_takeover_times_out(serving, store):
    store.shut(ORDERS)
    async with serving(store, Limits(activation_s_max=0.05)) as (_, connect):
        wire = await connect()
        wire.send(open_request())
        assert (await wire.reply()).code == Code.UNAVAILABLE


async def test_a_silent_client_is_disconnected(serving, store):
    async with serving(store, Limits(hello_s_max=0.05)) as (_, connect):
        silent = await connect(greet=False)
        greeted = await connect()
        assert await silent.ended()
        greeted.send(request(Kind.STATUS))
        assert (await greeted.reply()).code == Code.OK


async def test_server_stops_reading_from_stalled_peer(serving, store):
    """The answers that wait in memory stay bounded, and what was asked is answered in the end."""
    limits = Limits(write_buffer_bytes_max=1 << 16)
    async with serving(store, limits) as (server, connect):
        slow = await opened(lambda: connect(receive_bytes=1 << 17))
        slow.writer.transport.pause_reading()
        burst = b"".join(request(Kind.NEXT, number, a=1) for number in range(1000))
        sent = 0
        with contextlib.suppress(asyncio.TimeoutError):
            while sent < 4000:
                slow.send(burst)
                await asyncio.wait_for(slow.writer.drain(), 0.5)
                sent += 1
        assert sent < 4000, "the server read all of it"
        assert server.unsent() < (1 << 16) + (1 << 19)
        other = await opened(connect)
        other.send(request(Kind.TAIL, 1))
        assert (await other.reply()).code == Code.OK
        slow.writer.transport.resume_reading()
        replies = await slow.replies(sent * 1000)
        assert [reply.a for reply in replies] == list(range(sent * 1000))


async def test_stalled_half_closed_peer_is_disconnected(serving, store):
    """Its answers take less than what is too much to wait; it counts as slow all the same."""
    limits = Limits(write_buffer_bytes_max=1 << 26, stall_s_max=0.1)
    async with serving(store, limits) as (server, connect):
        slow = await opened(lambda: connect(receive_bytes=1 << 17))
        slow.writer.transport.pause_reading()
        burst = b"".join(request(Kind.NEXT, number, a=1) for number in range(10_000))
        while not server.unsent():
            slow.send(burst)
            await asyncio.wait_for(slow.writer.drain(), SOON)
        slow.writer.write_eof()
        await asyncio.wait_for(asyncio.to_thread(server.wait_until_empty), SOON)
        assert server.closed() == {"stalled": 1}


async def test_stop_releases_logs_before_closing_connections(serving, store):
    async with serving(store) as (server, connect):
        wire = await opened(connect)
        wire.send(request(Kind.WAIT, 1, a=5, b=60_000), request(Kind.TAIL, 2))
        assert (await wire.reply()).request == 2
        store.shut("release")
        stopping = asyncio.ensure_future(asyncio.to_thread(server.stop))
        assert (await wire.reply())[:4] == (Kind.WAIT, Code.UNAVAILABLE, 0, 1)
        wire.send(request(Kind.NEXT, a=1), open_request())
        assert [reply.code for reply in await wire.replies(2)] == [Code.NOT_OPEN, Code.UNAVAILABLE]
        assert not stopping.done()
        store.open("release")
        await asyncio.wait_for(stopping, SOON)
        assert store.released == [ORDERS]
        assert await wire.ended()


async def test_stop_times_out_on_unresponsive_store(serving, store):
    async with serving(store, Limits(stop_s_max=0.1)) as (server, connect):
        await opened(connect)
        store.shut(AUDIT)
        wire = await connect()
        wire.send(open_request(AUDIT))
        await asyncio.to_thread(store.wait_for_takeovers, 2)
        await asyncio.wait_for(asyncio.to_thread(server.stop), SOON)
        assert store.released == [ORDERS]


async def test_stop_finishes_and_releases_running_takeover(serving, store):
    store.shut(ORDERS)
    async with serving(store) as (server, connect):
        wire = await connect()
        wire.send(open_request())
        await asyncio.to_thread(store.wait_for_takeovers, 1)
        stopping = asyncio.ensure_future(asyncio.to_thread(server.stop))
        assert (await wire.reply()).code == Code.UNAVAILABLE
        store.open(ORDERS)
        await asyncio.wait_for(stopping, SOON)
        assert store.released == [ORDERS]


async def test_stop_logs_failed_release_and_continues(serving, store, caplog):
    async def release(log):
        raise StoreUnavailable(f"no way to {log}")

    store.release = release
    with caplog.at_level(logging.WARNING):
        async with serving(store) as (_, connect):
            await opened(connect)
    assert "no way to orders" in caplog.text
