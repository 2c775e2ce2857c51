"""The server: runs the machine on asyncio, with connections, timers and take-overs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import socket
import ssl
from collections.abc import Container, Coroutine
from typing import Protocol

from zlog._base.sequencer import Grant, LogAddress
from zlog._sequencer.frames import Code
from zlog.errors import LogNotFound, NotLeader, ZlogError
from zlog.seqr.failures import FailuresLogged
from zlog.seqr.machine.admission import Reason
from zlog.seqr.machine.machine import Machine
from zlog.seqr.machine.state import Activate, Close, Connection, Effect, Send
from zlog.seqr.namespaces import Namespace
from zlog.seqr.peer import Peer

_logger = logging.getLogger(__name__)

_BACKLOG = 1024


class _TakeOvers(Protocol):
    """Takes logs over and releases them: see :class:`zlog.seqr.election.activation.Activation`."""

    async def lives(self, log: LogAddress, epoch: int) -> bool: ...

    async def activate(self, log: LogAddress) -> Grant: ...

    async def release(self, log: LogAddress) -> None: ...


def bind(host: str, port: int) -> socket.socket:
    """Bind a socket to listen on. Port 0 selects a free port. Raises OSError."""
    family, _, _, _, where = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    return socket.create_server(where[:2], family=family, backlog=_BACKLOG)


class Server:
    """A sequencer that accepts connections.

    It listens from ``start`` until ``stop``.

    Args:
        tls: the TLS context; None means plain TCP.
    """

    def __init__(
        self, machine: Machine, take_overs: _TakeOvers, tls: ssl.SSLContext | None = None
    ) -> None:
        self.limits = machine.limits
        self.tls = tls
        self._machine = machine
        self._take_overs = take_overs
        self._loop = asyncio.get_running_loop()
        self._peers: dict[Connection, Peer] = {}
        self._complaints: dict[Reason, tuple[float, int]] = {}  # next line, suppressed
        self._tasks: set[asyncio.Task[None]] = set()
        self._to_release: list[LogAddress] = []
        self._turns = asyncio.Semaphore(self.limits.activations_max)
        self._timer: asyncio.TimerHandle | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._listener: asyncio.Server | None = None

    async def start(self, listening: socket.socket) -> None:
        """Serve the connections of a socket from :func:`bind`, and own the socket."""
        self._listener = await self._loop.create_server(lambda: Peer(self), sock=listening)
        self._sweep()

    async def adopt(self, log: LogAddress) -> None:
        """Take a log over before a client asks for it, unless it is served already."""
        for effect in self._machine.adopt(log):
            await asyncio.shield(self._spawn(self._activate(effect)))

    def step_down(self, namespace: Namespace) -> None:
        """Stop granting in the logs of a namespace, and answer the clients that wait."""
        self.apply(self._machine.step_down(namespace))

    def look_again(self) -> None:
        """Answer every WAIT, so that clients read their views."""
        self.apply(self._machine.doubt())

    def status(self) -> dict[str, object]:
        """Return the answer to STATUS."""
        return self._machine.status(self._loop.time())

    def used(self, namespace: Namespace) -> set[str]:
        """Return the logs of a namespace that some client has open or asks for."""
        return self._machine.used(namespace)

    def halt(self, *, cut: bool) -> None:
        """Stop granting positions, and refuse new connections.

        Args:
            cut: whether to close the existing connections too, so that clients and standbys look
                for another leader.
        """
        if self._listener is not None:
            self._listener.close()
        self.apply(self._machine.stop())
        if cut:
            for peer in [*self._peers.values()]:
                peer.close()

    async def stop(self, inherited: Container[Namespace] = ()) -> None:
        """Stop granting, release the logs, and close every connection.

        Waiting requests are answered at once, and clients are disconnected once their logs are
        released. If releasing the logs takes longer than ``stop_s_max`` seconds, it is abandoned.

        Args:
            inherited: the namespaces whose logs another sequencer takes over. They are not
                released.
        """
        self.halt(cut=False)
        give_up = self._loop.time() + self.limits.stop_s_max
        while self._loop.time() < give_up:
            for log in self._to_release:
                if Namespace.of(log) not in inherited:
                    self._spawn(self._release(log))
            self._to_release.clear()
            if not self._tasks:
                break
            # A take-over that ends now is followed by its release.
            left = give_up - self._loop.time()
            await asyncio.wait(self._tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for timer in (self._timer, self._sweeper):
            if timer is not None:
                timer.cancel()
        peers = [*self._peers.values()]
        for peer in peers:
            peer.close()
        if peers:
            await asyncio.wait([peer.ended for peer in peers], timeout=1.0)
        for peer in peers:
            peer.abort()

    def connect(self, peer: Peer) -> tuple[Connection | None, bytes]:
        """Accept a connection, or return None and the frames that refuse it."""
        connection, refusal = self._machine.connect(peer.ip)
        if connection is not None:
            self._peers[connection] = peer
        else:
            self.complain(Reason.LIMIT, peer, "too many connections, or shutting down")
        return connection, refusal

    def complain(self, reason: Reason, peer: Peer, detail: str) -> None:
        """Count a connection that was refused or closed, and log it, but not too often.

        For each reason, at most one line is logged in ``complaint_s`` seconds. It contains no text
        from the client.
        """
        self._machine.count(reason)
        due, more = self._complaints.get(reason, (-math.inf, 0))
        now = self._loop.time()
        if now < due:
            self._complaints[reason] = (due, more + 1)
            return
        self._complaints[reason] = (now + self.limits.complaint_s, 0)
        others = f" ({more} more since the last such message)" if more else ""
        _logger.info(
            "closed a connection reason=%s peer=%s: %s%s", reason.value, peer.ip, detail, others
        )

    def disconnect(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        del self._peers[connection]
        self._machine.disconnect(connection)

    def receive(self, connection: Connection, data: bytes) -> None:
        """Pass a chunk to the machine, and carry out the effects."""
        self.apply(self._machine.receive(connection, data, self._loop.time()))

    def apply(self, effects: list[Effect]) -> None:
        """Carry out effects of the machine."""
        for effect in effects:
            if isinstance(effect, Send):
                peer = self._peers.get(effect.connection)
                if peer is not None:
                    peer.write(effect.data)
            elif isinstance(effect, Close):
                peer = self._peers[effect.connection]
                self.complain(effect.reason, peer, effect.detail)
                peer.close()
            elif isinstance(effect, Activate):
                self._spawn(self._activate(effect))
            else:
                self._to_release.append(effect.log)
        self._set_timer()

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _activate(self, wanted: Activate) -> None:
        """Take a log over. A failure answers the OPENs that wait for it."""
        log = wanted.log
        code = Code.UNAVAILABLE
        try:
            self.apply(await self._take_over(wanted))
            return
        except LogNotFound:
            code = Code.LOG_NOT_FOUND
        except NotLeader as error:
            _logger.info("not the sequencer of log=%s: %s", log, error)
            code = Code.NOT_LEADER
        except (ZlogError, OSError, asyncio.TimeoutError, ValueError) as error:
            _logger.warning("could not take over log=%s: %s", log, error or "no answer in time")
        except Exception:  # any error, because the log's clients need an answer
            _logger.exception("could not take over log=%s", log)
        self.apply(self._machine.activation_failed(log, code))

    async def _take_over(self, wanted: Activate) -> list[Effect]:
        """Take a log over, unless this sequencer has it in an epoch that is alive."""
        log, epoch, delay = wanted
        if epoch:
            await asyncio.sleep(delay)
        async with self._turns:
            step = self.limits.activation_s_max
            if epoch and await asyncio.wait_for(self._take_overs.lives(log, epoch), step):
                return self._machine.epoch_lives(log)
            self.apply(self._machine.epoch_died(log))
            grant = await asyncio.wait_for(self._take_overs.activate(log), step)
        effects = self._machine.activated(log, grant)
        _logger.info("took over log=%s epoch=%d tail=%d", log, *grant)
        return effects

    async def _release(self, log: LogAddress) -> None:
        with FailuresLogged("could not release log=%s", log), contextlib.suppress(LogNotFound):
            await self._take_overs.release(log)
            _logger.info("released log=%s", log)

    def _set_timer(self) -> None:
        """Call the machine at its next timeout. A timer that is too early does no harm."""
        when = self._machine.next_timeout
        if when is None or (self._timer is not None and self._timer.when() <= when):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self.apply(self._machine.expire(self._loop.time()))

    def _sweep(self) -> None:
        """Close connections that have been idle for ``idle_s_max``, from time to time."""
        oldest = self._loop.time() - self.limits.idle_s_max
        for peer in [*self._peers.values()]:
            if peer.idle and peer.heard < oldest:
                self.complain(Reason.IDLE, peer, "idle for too long")
                peer.close()
        self._sweeper = self._loop.call_later(self.limits.idle_s_max / 4, self._sweep)
