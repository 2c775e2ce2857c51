"""The TCP client for asyncio: one connection for any number of concurrent calls.

All requests that are made in one iteration of the event loop are sent in one write.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import cast

from zlog._base.deadline import Deadline
from zlog._base.sequencer import Asking, Endpoint
from zlog._sequencer.credentials import NO_CREDENTIALS, Credentials
from zlog._sequencer.dialing import Dialer
from zlog._sequencer.frames import FRAME, Kind, Reply, ReplyReader, pack_payload
from zlog._sequencer.link import Handle, Link, LinkLost, keep_alive
from zlog._sequencer.session import Dialers, Session
from zlog.environment import world_of
from zlog.errors import SequencerTimeout

_KEY = "sequencers"


class AsyncioSequencer(Session):
    """A sequencer's client for the tasks of one event loop. It connects at its first call."""

    def __init__(self, address: str, credentials: Credentials = NO_CREDENTIALS) -> None:
        super().__init__(address, _Dialer(address, credentials))

    @staticmethod
    def shared(address: str, credentials: Credentials) -> Session:
        """Return a client that shares its connection with others of the running event loop."""
        loop = asyncio.get_running_loop()
        local = world_of(loop).local(loop)
        dialers: Dialers = local.setdefault(_KEY, Dialers(_Dialer))
        return dialers.session(address, credentials)

    async def connect(self, deadline: Deadline) -> asyncio.Future[None]:
        """Connect. Returns a future that is done when the connection has ended."""
        link = await self._dialer.link(deadline)
        assert isinstance(link, _Link)
        return link.ended


class _Guard:
    """A lock with a deadline, for tasks. It is not left locked if a waiting task is cancelled."""

    def __init__(self) -> None:
        self._held: asyncio.Future[None] | None = None

    async def acquire(self, deadline: Deadline) -> bool:
        """Take the lock. Returns False if the deadline passes first."""
        while self._held is not None:
            done, _ = await asyncio.wait({self._held}, timeout=deadline.remaining())
            if not done:
                return False
        self._held = asyncio.get_running_loop().create_future()
        return True

    def release(self) -> None:
        """Release the lock."""
        held, self._held = self._held, None
        if held is not None:
            held.set_result(None)


class _Dialer(Dialer):
    """Connects, one task at a time."""

    _new_guard = _Guard

    def monotonic(self) -> float:
        """Return the time of the event loop."""
        return asyncio.get_running_loop().time()

    def post(self, handle: Handle, kind: Kind, a: int, b: int, asking: Asking) -> bool:
        """Send a request with the others of this iteration of the loop."""
        link = handle.link
        if link is not self._link or not isinstance(link, _Link) or link.lost:
            return False
        link.post(kind, handle.number, a, b, asking)
        return True

    async def _dial(self, deadline: Deadline) -> Link:
        # Let all tasks that are ready start first. Thousands of them could use up this attempt's
        # time.
        await asyncio.sleep(0)
        return await super()._dial(deadline)

    async def _connect(
        self, endpoint: Endpoint, context: ssl.SSLContext | None, deadline: Deadline
    ) -> Link:
        link = _Link(self._address)
        try:
            connecting = asyncio.get_running_loop().create_connection(
                lambda: link, endpoint.host, endpoint.port, ssl=context
            )
            await asyncio.wait_for(connecting, deadline.remaining())
        except BaseException:
            link.drop("not connected")
            raise
        return link


class _Link(asyncio.Protocol):
    """A connection."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader = ReplyReader()
        self._pending: dict[int, asyncio.Future[Reply] | Asking] = {}
        self._outgoing: list[bytes] = []
        self._request = -1  # HELLO has 0, as does the refusal of a connection
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.heard = self._loop.time()
        self.lost = ""

    async def call(
        self, kind: Kind, handle: int, a: int, b: int, payload: bytes, deadline: Deadline
    ) -> Reply:
        """Send a request and return its answer."""
        if self.lost:
            raise LinkLost(self.lost)
        future: asyncio.Future[Reply] = self._loop.create_future()
        request = self.post(kind, handle, a, b, future)
        if payload:
            self._outgoing.append(pack_payload(payload))
        left = deadline.remaining()
        timer = None if left is None else self._loop.call_later(left, self._expire, future)
        try:
            return await future
        finally:
            self._pending.pop(request, None)
            if timer is not None:
                timer.cancel()

    def post(
        self, kind: Kind, handle: int, a: int, b: int, answer: asyncio.Future[Reply] | Asking
    ) -> int:
        """Send a request and return its number."""
        self._request = request = self._request + 1 & 0xFFFFFFFF
        self._pending[request] = answer
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(FRAME.pack(kind, 0, handle, request, a, b))
        return request

    def drop(self, reason: str) -> None:
        """End the connection. Calls that are waiting for it raise LinkLost."""
        if self.lost:
            return
        self.lost = f"the connection to {self._address} ended: {reason}"
        for future in [*self._pending.values()]:
            if not future.done():
                future.set_exception(LinkLost(self.lost))
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """End the connection because its user closes it, and wait until it has ended."""
        self.drop("closed by its user")
        await asyncio.wait({self.ended})

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = transport = cast(asyncio.Transport, transport)  # not uvloop's superclass
        keep_alive(transport.get_extra_info("socket"))
        if self.lost:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Resolve the calls whose answers are in the received data."""
        self.heard = self._loop.time()
        try:
            for reply in self._reader.feed(data):
                future = self._pending.pop(reply.request, None)
                if future is not None and not future.done():
                    future.set_result(reply)
        except ValueError as error:
            self.drop(str(error))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail all calls that are waiting."""
        self.drop(str(exc) if exc else "closed by the sequencer")
        self.ended.set_result(None)

    def _flush(self) -> None:
        data = b"".join(self._outgoing)
        self._outgoing.clear()
        if self._transport is not None and not self.lost:
            self._transport.write(data)

    def _expire(self, future: asyncio.Future[Reply]) -> None:
        if not future.done():
            future.set_exception(SequencerTimeout(f"{self._address} did not answer in time"))
