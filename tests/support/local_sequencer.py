"""A sequencer in a thread of the test's own process, which can be paused like a stopped one."""

from __future__ import annotations

import asyncio
import threading

import zlog
from zlog._sequencer import format_address
from zlog.seqr.activation import Leadership, Stores
from zlog.seqr.limits import Limits
from zlog.seqr.server import Server, bind
from zlog.store import Store

_SECONDS = 30


class LocalSequencer:
    """Serves the logs of a store, and offers itself to those that have no sequencer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listening = bind("127.0.0.1", 0)
        self.address = format_address(*self._listening.getsockname())
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._go_on = threading.Event()
        self._go_on.set()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._ready.wait(_SECONDS)

    def announce(self) -> None:
        """Make the offer again."""
        asyncio.run_coroutine_threadsafe(self._leadership.announce(), self._loop).result(_SECONDS)

    def withdraw(self) -> None:
        """Take the offer back; logs that have it keep it."""
        asyncio.run_coroutine_threadsafe(self._leadership.withdraw(), self._loop).result(_SECONDS)

    def pause(self) -> None:
        """Answer nobody, and keep all connections, as a process does after SIGSTOP."""
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

    def stop(self) -> None:
        """Stop cleanly; the logs go on without it."""
        self.resume()
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(_SECONDS)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stopping = asyncio.Event()
        stores = Stores(self._store, zlog.connect, Limits())
        self._leadership = Leadership(stores, self.address, Limits())
        server = Server(
            self.address, self._leadership.activate, self._leadership.release, "test", Limits()
        )
        await server.start(self._listening)
        await self._leadership.announce()
        self._ready.set()
        await self._stopping.wait()
        await server.stop()
        await stores.close()
