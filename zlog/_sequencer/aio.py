"""The asyncio TCP client: one connection, any number of calls at once.

Requests of one turn of the event loop leave in one write; answers are cut from each chunk in one
go.
"""

from __future__ import annotations

import asyncio
from typing import cast

from zlog._base.deadline import Deadline
from zlog._base.sequencer import parse_address
from zlog._sequencer.credentials import NO_CREDENTIALS, Credentials
from zlog._sequencer.dialing import Dialer
from zlog._sequencer.frames import (
    FRAME,
    STATUS_BYTES_MAX,
    Kind,
    Reply,
    ReplyReader,
    pack_payload,
)
from zlog._sequencer.greeting import CONNECT_SECONDS_MAX, connect_error, greet
from zlog._sequencer.keepalive import keep_alive
from zlog._sequencer.link import LinkLost
from zlog._sequencer.session import Dialers, Session
from zlog.environment import world_of
from zlog.errors import SequencerTimeout

_KEY = "sequencers"


class AsyncioSequencer(Session):
    """Client of the sequencer at an address, for the tasks of one event loop.

    It connects when it is first used.
    """

    def __init__(self, address: str, credentials: Credentials = NO_CREDENTIALS) -> None:
        super().__init__(address, _Dialer(address, credentials))

    @staticmethod
    def shared(address: str, credentials: Credentials) -> Session:
        """Return one that shares its connection with others of the running event loop."""
        loop = asyncio.get_running_loop()
        local = world_of(loop).local(loop)
        dialers: Dialers[_Dialer] = local.setdefault(_KEY, Dialers(_Dialer))
        return dialers.session(address, credentials)


class _Dialer(Dialer["_Link", "_Guard"]):
    """Connects, one task at a time."""

    def __init__(self, address: str, credentials: Credentials) -> None:
        super().__init__(address, credentials, _Guard)

    def monotonic(self) -> float:
        """The clock of ``_Link.heard``."""
        return asyncio.get_running_loop().time()

    async def close(self) -> None:
        """End the link and make no other."""
        await super().close()
        if self._link is not None:
            await asyncio.wait({self._link.ended})

    async def _dial(self, deadline: Deadline) -> _Link:
        # First let all tasks start that are ready. They may be thousands, and take up the time that
        # this step has.
        await asyncio.sleep(0)
        step = deadline.sooner(CONNECT_SECONDS_MAX)
        link = _Link(self._address)
        try:
            host, port, tls = parse_address(self._address)
            token = self._credentials.token()
            context = self._credentials.context() if tls else None
            connecting = asyncio.get_running_loop().create_connection(
                lambda: link, host, port, ssl=context
            )
            await asyncio.wait_for(connecting, step.remaining())
            await greet(link, self._address, token, step)
        except (OSError, ValueError, asyncio.TimeoutError) as error:
            link.drop("not connected")
            raise connect_error(self._address, error, deadline) from error
        except BaseException:
            link.drop("not connected")
            raise
        if self._closed:
            link.drop("closed by its user")
        return link


class _Guard:
    """A task's lock with a deadline, which a cancelled waiter never leaves locked."""

    def __init__(self) -> None:
        self._held: asyncio.Future[None] | None = None

    async def acquire(self, deadline: Deadline) -> bool:
        """Take the lock; False when the deadline passes first."""
        while self._held is not None:
            done, _ = await asyncio.wait({self._held}, timeout=deadline.remaining())
            if not done:
                return False
        self._held = asyncio.get_running_loop().create_future()
        return True

    def release(self) -> None:
        """Give the lock back."""
        held, self._held = self._held, None
        if held is not None:
            held.set_result(None)


class _Link(asyncio.Protocol):
    """One connection."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader = ReplyReader(STATUS_BYTES_MAX)
        self._pending: dict[int, asyncio.Future[Reply]] = {}
        self._outgoing: list[bytes] = []
        self._request = -1  # HELLO goes first and has number 0, as a refusal of the connection
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.heard = self._loop.time()
        self.lost = ""

    async def call(
        self, kind: Kind, handle: int, a: int, b: int, payload: bytes, deadline: Deadline
    ) -> Reply:
        """Send one request and return its answer."""
        if self.lost:
            raise LinkLost(self.lost)
        self._request = request = self._request + 1 & 0xFFFFFFFF
        future: asyncio.Future[Reply] = self._loop.create_future()
        self._pending[request] = future
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(FRAME.pack(kind, 0, handle, request, a, b))
        if payload:
            self._outgoing.append(pack_payload(payload))
        left = deadline.remaining()
        timer = None if left is None else self._loop.call_later(left, self._expire, future)
        try:
            return await future
        finally:
            del self._pending[request]
            if timer is not None:
                timer.cancel()

    def drop(self, reason: str) -> None:
        """End the connection; every call that waits on it raises LinkLost."""
        if self.lost:
            return
        self.lost = f"the connection to {self._address} ended: {reason}"
        for future in self._pending.values():
            if not future.done():
                future.set_exception(LinkLost(self.lost))
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        keep_alive(transport.get_extra_info("socket"))
        if self.lost:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Hand out the answers in a chunk."""
        self.heard = self._loop.time()
        try:
            for reply in self._reader.feed(data):
                future = self._pending.get(reply.request)
                if future is not None and not future.done():
                    future.set_result(reply)
        except ValueError as error:
            self.drop(str(error))

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail what still waits."""
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
