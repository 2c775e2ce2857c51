"""The machine on asyncio: connections, timers, and take-overs that run beside them."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Container, Coroutine
from typing import Protocol

from zlog._base.sequencer import Grant, LogAddress
from zlog._sequencer.frames import Code
from zlog.errors import LogNotFound, NotLeader, ZlogError
from zlog.seqr.limits import Limits
from zlog.seqr.machine.admission import Admission, Reason
from zlog.seqr.machine.machine import Machine
from zlog.seqr.machine.state import Activate, Close, Connection, Effect, Send
from zlog.seqr.namespaces import Namespace
from zlog.seqr.peer import Peer
from zlog.seqr.throttled_log import Complaints

_logger = logging.getLogger(__name__)

_BACKLOG = 1024


class TakeOvers(Protocol):
    """What makes this sequencer the one of a log, and ends that.

    Each raises LogNotFound, NotLeader, or anything else for "not now".
    """

    async def lives(self, log: LogAddress, epoch: int) -> bool:
        """Whether there is no reason to take the log over in an epoch above this one."""

    async def activate(self, log: LogAddress) -> Grant:
        """Take a log over in an epoch above every earlier one; returns epoch and tail."""

    async def release(self, log: LogAddress) -> None:
        """Let a log go on without this sequencer, at a clean stop."""


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
        address: what clients find in views, ``tcp://HOST:PORT`` or ``tls://HOST:PORT``.
        take_overs: of its logs.
        version: of the program, for STATUS.
        limits: see there.
        describe: returns what STATUS tells beside that.
        admission: who is served; None: all clients.
        tls: how to speak TLS; None for not at all.
        identity: of the stores whose logs it serves.

    Attributes:
        limits: as given.
        tls: as given.
    """

    def __init__(
        self,
        address: str,
        take_overs: TakeOvers,
        version: str,
        limits: Limits | None = None,
        describe: Callable[[], dict[str, object]] = dict,
        admission: Admission | None = None,
        tls: ssl.SSLContext | None = None,
        identity: str = "",
    ) -> None:
        self.limits = limits or Limits()
        self.tls = tls
        self._take_overs = take_overs
        self._loop = asyncio.get_running_loop()
        self._machine = Machine(
            address, version, self._loop.time(), self.limits, describe, admission, identity
        )
        self._complaints = Complaints(self.limits.complaint_s)
        self._peers: dict[Connection, Peer] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._to_release: list[LogAddress] = []
        self._turns = asyncio.Semaphore(self.limits.activations_max)
        self._timer: asyncio.TimerHandle | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._listener: asyncio.Server | None = None

    async def start(self, listening: socket.socket) -> None:
        """Serve the connections of a socket from :func:`bind`, and own it from now on."""
        self._listener = await self._loop.create_server(lambda: Peer(self), sock=listening)
        self._sweep()

    async def adopt(self, log: LogAddress) -> None:
        """Take a log over before a client asks for it, if it is not served already."""
        for effect in self._machine.adopt(log):
            assert isinstance(effect, Activate)  # no client waits for an answer
            await asyncio.shield(self._spawn(self._run_activation(effect)))

    def step_down(self, namespace: Namespace) -> None:
        """Grant nothing more for the logs of a namespace; waiting clients are answered at once."""
        self.apply(self._machine.step_down(*namespace))

    def look_again(self) -> None:
        """Answer every WAIT, so that clients look at the view."""
        self.apply(self._machine.doubt())

    def status(self) -> dict[str, object]:
        """Return what STATUS answers."""
        return self._machine.status(self._loop.time())

    def used(self, namespace: Namespace) -> set[str]:
        """Names of the logs of a namespace that some client has open, or asks for."""
        return self._machine.used(*namespace)

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

    async def stop(self, inherited: Container[Namespace] = ()) -> None:
        """Grant nothing more, release the logs, and close every connection.

        Clients hear at once that this sequencer is ending, and are cut off only
        after their logs were released. What takes longer than ``stop_s_max`` is left undone:
        clients notice by themselves that the sequencer is gone.

        Args:
            inherited: namespaces whose logs another sequencer takes over as they are.
        """
        self.halt(cut=False)
        give_up = self._loop.time() + self.limits.stop_s_max
        while self._loop.time() < give_up:
            for log in self._to_release:
                if Namespace(log.pool, log.namespace) not in inherited:
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
        if self._sweeper is not None:
            self._sweeper.cancel()
        peers = list(self._peers.values())
        for peer in peers:
            peer.close()
        if peers:
            await asyncio.wait([peer.ended for peer in peers], timeout=1.0)
        for peer in peers:
            peer.abort()

    def connect(self, peer: Peer) -> tuple[Connection | None, bytes]:
        """Introduce a new connection to the machine."""
        connection, refusal = self._machine.connect(peer.ip)
        if connection is not None:
            self._peers[connection] = peer
        else:
            self.complain(Reason.LIMIT, peer, "too many connections, or about to stop")
        return connection, refusal

    def complain(self, reason: Reason, peer: Peer, detail: str) -> None:
        """Count and log that a connection is refused or closed."""
        self._machine.count(reason)
        self._complaints.tell(reason, peer.ip, detail, self._loop.time())

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
                peer = self._peers[effect.connection]
                self.complain(effect.reason, peer, effect.detail)
                peer.close()
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
        """Take a log over. A failure is the answer to the OPENs that wait for it."""
        log = wanted.log
        try:
            effects = await self._take_over(wanted)
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

    async def _take_over(self, wanted: Activate) -> list[Effect]:
        """Take a log over, unless it is this sequencer's in an epoch that lives."""
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

    async def _run_release(self, log: LogAddress) -> None:
        try:
            await self._take_overs.release(log)
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

    def _sweep(self) -> None:
        """Close, every now and then, the connections on which nothing has happened for long."""
        oldest = self._loop.time() - self.limits.idle_s_max
        for peer in list(self._peers.values()):
            if peer.idle and peer.heard < oldest:
                self.complain(Reason.IDLE, peer, "nothing was asked for long")
                peer.close()
        self._sweeper = self._loop.call_later(self.limits.idle_s_max / 4, self._sweep)

    def _expire(self) -> None:
        self._timer = None
        self.apply(self._machine.expire(self._loop.time()))
