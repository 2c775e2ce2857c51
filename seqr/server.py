"""The machine on asyncio: sockets, timers, and take-overs that run beside them."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Container, Coroutine
from typing import cast

from zlog._frames import Code
from zlog._sequencer.keepalive import keep_alive
from zlog._sequencer.types import Grant, LogAddress
from zlog.errors import LogNotFound, NotLeader, ZlogError
from zlog.seqr.limits import Limits
from zlog.seqr.machine import Machine
from zlog.seqr.places import Place
from zlog.seqr.state import Activate, Close, Connection, Effect, Send

_logger = logging.getLogger(__name__)

_BACKLOG = 1024

Activator = Callable[[LogAddress], Awaitable[Grant]]
"""Takes a log over in an epoch above every earlier one; returns epoch and tail.

Raises LogNotFound, NotLeader, or anything else for "not now".
"""

Releaser = Callable[[LogAddress], Awaitable[None]]
"""Lets a log go on without this sequencer, at a clean stop."""


def bind(host: str, port: int) -> socket.socket:
    """Bind a socket to listen on; port 0 takes any that is free. Raises OSError."""
    family, _, _, _, where = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    return socket.create_server(where[:2], family=family, backlog=_BACKLOG)


class Server:
    """A sequencer that listens.

    Life: made → listening (``start``) → stopped (``stop``), and not again.

    Args:
        address: what clients find in views, ``tcp://HOST:PORT``.
        activate: see :data:`Activator`.
        release: see :data:`Releaser`.
        version: of the program, for STATUS.
        limits: see there.
        describe: returns what STATUS tells beside that.
    """

    def __init__(
        self,
        address: str,
        activate: Activator,
        release: Releaser,
        version: str,
        limits: Limits | None = None,
        describe: Callable[[], dict[str, object]] = dict,
    ) -> None:
        self._activate = activate
        self._release = release
        self._limits = limits or Limits()
        self._loop = asyncio.get_running_loop()
        self._machine = Machine(address, version, self._loop.time(), self._limits, describe)
        self._peers: dict[Connection, _Peer] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._to_release: list[LogAddress] = []
        self._turns = asyncio.Semaphore(self._limits.activations_max)
        self._timer: asyncio.TimerHandle | None = None
        self._listener: asyncio.Server | None = None

    async def start(self, listening: socket.socket) -> None:
        """Serve the connections of a socket from :func:`bind`, and own it from now on."""
        self._listener = await self._loop.create_server(
            lambda: _Peer(self, self._limits), sock=listening
        )

    async def adopt(self, log: LogAddress) -> None:
        """Take a log over before anybody asks for it, if it is not served already."""
        for effect in self._machine.adopt(log):
            assert isinstance(effect, Activate)  # nobody waits for an answer
            await asyncio.shield(self._spawn(self._run_activation(effect)))

    def step_down(self, place: Place) -> None:
        """Grant nothing more for the logs of a place; whoever waits is told at once."""
        self.apply(self._machine.step_down(*place))

    def look_again(self) -> None:
        """Answer every WAIT, so that clients look at the view."""
        self.apply(self._machine.doubt())

    def wanted(self, place: Place) -> bool:
        """Whether some client has a log of the place open, or asks for one."""
        return self._machine.wanted(*place)

    def halt(self, *, cut: bool) -> None:
        """Grant nothing more, and take no connections.

        Args:
            cut: end the connections too, which tells standbys and clients to look elsewhere.
        """
        if self._listener is not None:
            self._listener.close()
        self.apply(self._machine.stop())
        if cut:
            for peer in list(self._peers.values()):
                peer.close()

    async def stop(self, inherited: Container[Place] = ()) -> None:
        """Grant nothing more, release the logs, and close every connection.

        Clients are told at once that this sequencer is no use any more, and are cut off only
        after their logs were released. What takes longer than ``stop_s_max`` is left undone:
        clients notice by themselves that the sequencer is gone.

        Args:
            inherited: places whose logs another sequencer takes over as they are.
        """
        self.halt(cut=False)
        give_up = self._loop.time() + self._limits.stop_s_max
        while self._loop.time() < give_up:
            for log in self._to_release:
                if Place(log.pool, log.namespace) not in inherited:
                    self._spawn(self._run_release(log))
            self._to_release.clear()
            if not self._tasks:
                break
            # A take-over that ends now is followed by its release.
            left = give_up - self._loop.time()
            await asyncio.wait(self._tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._timer is not None:
            self._timer.cancel()
        peers = list(self._peers.values())
        for peer in peers:
            peer.close()
        if peers:
            await asyncio.wait([peer.ended for peer in peers], timeout=1.0)
        for peer in peers:
            peer.abort()

    def connect(self, peer: _Peer) -> tuple[Connection | None, bytes]:
        """Introduce a new connection to the machine."""
        connection, refusal = self._machine.connect()
        if connection is not None:
            self._peers[connection] = peer
        return connection, refusal

    def disconnect(self, connection: Connection) -> None:
        """Tell the machine that a connection is gone."""
        del self._peers[connection]
        self._machine.disconnect(connection)

    def receive(self, connection: Connection, data: bytes) -> None:
        """Give the machine a chunk and carry out what follows."""
        self.apply(self._machine.receive(connection, data, self._loop.time()))

    def apply(self, effects: list[Effect]) -> None:
        """Carry out the machine's effects."""
        for effect in effects:
            if isinstance(effect, Send):
                peer = self._peers.get(effect.connection)
                if peer is not None:
                    peer.write(effect.data)
            elif isinstance(effect, Close):
                _logger.info("closing a connection: %s", effect.reason)
                self._peers[effect.connection].close()
            elif isinstance(effect, Activate):
                self._spawn(self._run_activation(effect))
            else:
                self._to_release.append(effect.log)
        self._set_timer()

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run_activation(self, wanted: Activate) -> None:
        """Take a log over. Whatever goes wrong is the answer to the OPENs that wait for it."""
        log = wanted.log
        try:
            async with self._turns:
                grant = await asyncio.wait_for(self._activate(log), self._limits.activation_s_max)
            effects = self._machine.activated(log, grant)
            _logger.info("took over log=%s epoch=%d tail=%d", log, *grant)
        except LogNotFound:
            effects = self._machine.activation_failed(log, Code.LOG_NOT_FOUND)
        except NotLeader as error:
            _logger.info("not the sequencer of log=%s: %s", log, error)
            effects = self._machine.activation_failed(log, Code.NOT_LEADER)
        except (ZlogError, OSError, asyncio.TimeoutError, ValueError) as error:
            _logger.warning("could not take over log=%s: %s", log, error or "no answer in time")
            effects = self._machine.activation_failed(log, Code.UNAVAILABLE)
        except Exception:  # one log's trouble must not leave its clients without an answer
            _logger.exception("could not take over log=%s", log)
            effects = self._machine.activation_failed(log, Code.UNAVAILABLE)
        self.apply(effects)

    async def _run_release(self, log: LogAddress) -> None:
        try:
            await self._release(log)
            _logger.info("released log=%s", log)
        except LogNotFound:
            pass
        except Exception as error:  # noqa: BLE001  # its clients find out by themselves
            _logger.warning("could not release log=%s: %s", log, error)

    def _set_timer(self) -> None:
        """Have the machine's next time-out called. A timer that is too early does no harm."""
        when = self._machine.next_timeout
        if when is None or (self._timer is not None and self._timer.when() <= when):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self.apply(self._machine.expire(self._loop.time()))


class _Peer(asyncio.Protocol):
    """One connection: bytes to the server, and pressure back to the peer."""

    def __init__(self, server: Server, limits: Limits) -> None:
        self._server = server
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._connection: Connection | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.ended: asyncio.Future[None] = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let the peer in, or send it away."""
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        keep_alive(transport.get_extra_info("socket"))
        transport.set_write_buffer_limits(high=self._limits.write_buffer_bytes_max)
        self._connection, refusal = self._server.connect(self)
        if self._connection is None:
            transport.write(refusal)
            transport.close()
            return
        self._timer = self._loop.call_later(self._limits.hello_s_max, self._no_hello)

    def data_received(self, data: bytes) -> None:
        """Answer a chunk, at once where nothing but answers comes of it."""
        connection, transport = self._connection, self._transport
        if connection is None or transport is None:
            return
        answers = connection.answer(data, self._loop.time())
        if answers:
            transport.write(answers)
        if connection.unfinished:
            self._server.receive(connection, b"")

    def pause_writing(self) -> None:
        """Read nothing more from a peer that does not read, and cut it off after a while."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
        self._set_timer(self._limits.stall_s_max, self.abort)

    def resume_writing(self) -> None:
        """Go on: the peer has caught up."""
        self._set_timer(None, self.abort)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Forget the peer."""
        self._set_timer(None, self.abort)
        if self._connection is not None:
            self._server.disconnect(self._connection)
            self._connection = None
        self.ended.set_result(None)

    def write(self, data: bytes) -> None:
        """Send frames."""
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        """End the connection when everything written is out, or after a while in any case."""
        if self._transport is not None:
            self._transport.close()
            self._set_timer(self._limits.stall_s_max, self.abort)

    def abort(self) -> None:
        """End the connection now."""
        if self._transport is not None:
            self._transport.abort()

    def _no_hello(self) -> None:
        if self._connection is not None and not self._connection.greeted:
            self.abort()

    def _set_timer(self, seconds: float | None, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self._loop.call_later(seconds, then)
