"""A connection of the server: TLS, timeouts, and flow control."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Protocol, cast

from zlog._sequencer.link import keep_alive
from zlog.seqr.limits import Limits
from zlog.seqr.machine.admission import Greeting, Reason
from zlog.seqr.machine.state import Connection


class _Owner(Protocol):
    """The methods of the server that a peer calls."""

    limits: Limits
    tls: ssl.SSLContext | None

    def connect(self, peer: Peer) -> tuple[Connection | None, bytes]: ...

    def disconnect(self, connection: Connection) -> None: ...

    def receive(self, connection: Connection, data: bytes) -> None: ...

    def complain(self, reason: Reason, peer: Peer, detail: str) -> None: ...


class Peer(asyncio.Protocol):
    """A client's network connection, with or without TLS.

    If the client does not read its answers, the sequencer stops reading its requests.

    Attributes:
        ip: the client's IP address; empty if it is unknown.
        heard: when the client last sent anything, on the event loop's clock.
        ended: a future that is done once the connection has ended.
    """

    def __init__(self, server: _Owner) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._plain: asyncio.Transport | None = None
        """The transport below TLS, or the only transport without TLS."""
        self._connection: Connection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._securing: asyncio.Task[None] | None = None
        self._early = b""
        """Bytes that were decrypted before the end of the handshake was reported."""
        self.ip = ""
        self.heard = self._loop.time()
        self.ended: asyncio.Future[None] = self._loop.create_future()

    @property
    def idle(self) -> bool:
        """Whether the peer is greeted and has no outstanding request."""
        connection = self._connection
        if connection is None or connection.closed:
            return False
        return connection.greeted and not connection.outstanding

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, or refuse it."""
        transport = cast(asyncio.Transport, transport)  # uvloop's transport is not a subclass
        self._transport = self._plain = transport
        address = transport.get_extra_info("peername")
        self.ip = str(address[0]) if address else ""
        keep_alive(transport.get_extra_info("socket"))
        self._connection, refusal = self._server.connect(self)
        if self._connection is None:
            if self._server.tls is None:
                transport.write(refusal)
                transport.close()
            else:  # the refusal would need a handshake
                transport.abort()
            return
        self._set_timer(self._server.limits.hello_s_max, self._no_greeting)
        if self._server.tls is None:
            self._limit_buffer()
        else:
            # The task's first step runs before the loop reads anything, and pauses reading.
            self._securing = self._loop.create_task(self._secure(transport, self._server.tls))

    async def _secure(self, plain: asyncio.Transport, context: ssl.SSLContext) -> None:
        """Do the TLS handshake, after the connection was counted and its timer started."""
        try:
            secured = await self._loop.start_tls(
                plain,
                self,
                context,
                server_side=True,
                ssl_handshake_timeout=2 * self._server.limits.hello_s_max,  # after the timer
            )
        except (OSError, asyncio.TimeoutError) as error:
            if self._connection is not None:
                self._server.complain(Reason.TLS, self, _why(error))
            plain.abort()
            self._forget()
            return
        connection = self._connection
        if connection is None or secured is None:
            plain.abort()
            return
        self._transport = secured
        self._limit_buffer()
        certified = context.verify_mode is ssl.CERT_NONE or bool(secured.get_extra_info("peercert"))
        connection.greeting = Greeting(certified=certified)
        self._securing, early, self._early = None, self._early, b""
        self.data_received(early)

    def data_received(self, data: bytes) -> None:
        """Answer a chunk. Only effects other than answers need the server."""
        connection, transport = self._connection, self._transport
        if connection is None or transport is None:
            return
        if self._securing is not None:  # an answer would go out in plain text
            self._early += data
            return
        self.heard = now = self._loop.time()
        answers = connection.answer(data, now)
        if answers:
            transport.write(answers)
        if connection.unfinished:
            self._server.receive(connection, b"")

    def pause_writing(self) -> None:
        """Stop reading from a peer that does not read, and disconnect it after a while."""
        if self._transport is None or self._transport.is_closing():
            return  # the timer of the close is running
        self._transport.pause_reading()
        self._set_timer(self._server.limits.stall_s_max, self._no_reader)

    def resume_writing(self) -> None:
        """Read again, because the peer has caught up."""
        if self._transport is not None and self._transport.is_closing():
            return  # the timer of the close is running
        self._set_timer(None, self.abort)
        if self._transport is not None:
            self._transport.resume_reading()

    def eof_received(self) -> None:
        """Let the transport close after it has sent everything, or after a while in any case."""
        self._set_timer(self._server.limits.stall_s_max, self._no_reader)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the peer."""
        self._forget()

    def write(self, data: bytes) -> None:
        """Send frames."""
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        """End the connection after everything was sent, or after a while in any case."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()
            self._set_timer(self._server.limits.stall_s_max, self.abort)

    def abort(self) -> None:
        """End the connection now."""
        if self._plain is not None:
            # This is not the TLS transport: asyncio cannot abort that after it was closed.
            self._plain.abort()

    def _forget(self) -> None:
        """Leave the machine once, because event loops report a failed handshake differently."""
        self._set_timer(None, self.abort)
        if self._connection is not None:
            self._server.disconnect(self._connection)
            self._connection = None
        if not self.ended.done():
            self.ended.set_result(None)

    def _limit_buffer(self) -> None:
        assert self._transport is not None
        self._transport.set_write_buffer_limits(high=self._server.limits.write_buffer_bytes_max)

    def _no_greeting(self) -> None:
        if self._connection is not None and not self._connection.greeted:
            self._server.complain(Reason.SILENT, self, "no greeting in time")
            self.abort()
            self._forget()

    def _no_reader(self) -> None:
        self._server.complain(Reason.STALLED, self, "answers were not read")
        self.abort()

    def _set_timer(self, seconds: float | None, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self._loop.call_later(seconds, then)


def _why(error: Exception) -> str:
    """Return why a handshake failed, in OpenSSL's words, without text from the peer."""
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return type(error).__name__
