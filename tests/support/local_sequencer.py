"""A sequencer in a thread of the test's own process, which can be paused like a stopped one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import zlog
from zlog._base.deadline import Deadline
from zlog._base.sequencer import format_address
from zlog._catalog.directory import Directory
from zlog._io import BlockingIo, drive
from zlog.seqr.election.activation import Activation
from zlog.seqr.election.election import Election
from zlog.seqr.election.lease import LEASE_SECONDS_DEFAULT
from zlog.seqr.limits import Limits
from zlog.seqr.machine.machine import Machine
from zlog.seqr.namespaces import Stores
from zlog.seqr.security import OPEN_TO_ALL, Security
from zlog.seqr.server import Server, bind
from zlog.store import Store

_SECONDS = 30


class LocalSequencer:
    """Serves the logs of a store, and offers itself to those that have no sequencer.

    Args:
        store: that has the logs.
        leads: whether it takes over what others serve, as the one that has the lease does.
        security: what it shows and demands.
        limits: see there.
    """

    def __init__(
        self,
        store: Store,
        *,
        leads: bool = False,
        security: Security = OPEN_TO_ALL,
        limits: Limits | None = None,
    ) -> None:
        self._security = security
        self._limits = limits or Limits()
        self._store = store
        self._leads = leads
        self._listening = bind("127.0.0.1", 0)
        host, port = self._listening.getsockname()
        self.address = format_address(host, port, bool(security.certificate))
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._go_on = threading.Event()
        self._go_on.set()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._ready.wait(_SECONDS)

    def announce(self) -> None:
        """Make the offer again."""
        drive(Directory(BlockingIo(self._store)).announce(self.address, Deadline(_SECONDS)))

    def withdraw(self) -> None:
        """Take the offer back, for good; logs that have the sequencer keep it."""
        self._run_there(self._stop_leading)
        drive(Directory(BlockingIo(self._store)).withdraw(self.address, Deadline(_SECONDS)))

    def hand_out(self, count: int) -> None:
        """Have the sequencer hand out that many positions of each log, at once."""

        def hand_out() -> None:
            for log in self._server._machine._logs.values():
                log.tail += count

        self._run_there(hand_out)

    def pause(self) -> None:
        """Answer nothing, and keep all connections, as a process does after SIGSTOP."""
        paused = threading.Event()
        self._go_on.clear()

        def block() -> None:
            paused.set()
            self._go_on.wait(_SECONDS)

        self._loop.call_soon_threadsafe(block)
        assert paused.wait(_SECONDS)

    def resume(self) -> None:
        """Go on, as after SIGCONT."""
        self._go_on.set()

    def vanish(self) -> None:
        """Be gone for all others, as a process that was killed; only ``stop`` is of use then."""

        def vanish() -> None:
            self._stop_leading()
            self._server._listener.close()  # type: ignore[union-attr]
            for peer in list(self._server._peers.values()):
                peer.abort()

        self._run_there(vanish)

    def _stop_leading(self) -> None:
        self._election._leading.pop(self._stores.home).cancel()

    def _run_there(self, work: Callable[[], None]) -> None:
        """Have the sequencer's thread do something, and wait until it has."""

        async def do() -> None:
            work()

        asyncio.run_coroutine_threadsafe(do(), self._loop).result(_SECONDS)

    def stop(self) -> None:
        """Stop cleanly; the logs go on without it."""
        self.resume()
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(_SECONDS)
        assert not self._thread.is_alive()

    def _do(self, action: Callable[[], object]) -> None:
        """Do something in the sequencer's thread."""

        async def do() -> None:
            action()

        asyncio.run_coroutine_threadsafe(do(), self._loop).result(_SECONDS)

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stopping = asyncio.Event()
        limits = self._limits
        self._stores = Stores(self._store, zlog.connect, limits)
        self._election = Election(self._stores, self.address, limits, LEASE_SECONDS_DEFAULT)
        activation = Activation(self._stores, self._election, self.address, limits)
        machine = Machine(
            self.address,
            "test",
            self._loop.time(),
            limits,
            admission=self._security.admission(),
            identity=self._store.identity,
        )
        server = Server(machine, activation, self._security.context())
        self._server = server
        await server.start(self._listening)
        if self._leads:
            candidate = self._election._join(self._stores.home, self._stores.first)
            candidate.lease.exclusive = True
        await self._election.start(server)
        self._ready.set()
        await self._stopping.wait()
        await self._election.resign()
        await server.stop()
        await self._stores.close()
