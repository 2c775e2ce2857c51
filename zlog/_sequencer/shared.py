"""Clients of the sequencer that processes share through an embedded store, without a daemon.

A change of view activates it in the new epoch (``zlog._layout.views``), and it grants positions
only in that epoch. ``open`` does not activate it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakKeyDictionary

from zlog._base.deadline import Deadline
from zlog._base.sequencer import SHARED_ADDRESS, Asking, Grant, LogAddress, check_count
from zlog._native.local import SharedSequencer
from zlog.errors import SequencerUnavailable, StaleEpoch

_SLICE_SECONDS = 0.25
"""How long a thread waits at a time, so that it ends soon after its wait is cancelled."""

_THREADS_MAX = 16
"""How many waits of an event loop have a thread each, and are woken at once. The other waits are
polled, because a thread for each of a thousand logs costs more."""

_POLL_SECONDS = 0.02

_POLLED_SECONDS = 5.0
"""How long a wait is polled before it may get a thread."""


class SharedSequencerClient:
    """The client for threads. Its coroutines never suspend, and ``wait`` blocks the thread."""

    def __init__(self, shared: SharedSequencer) -> None:
        self._shared = shared

    def ask(self, log: LogAddress, count: int, epoch: int, asking: Asking) -> bool:
        """Take ``count`` positions for ``asking``. Returns False if none were granted."""
        first = self._shared.next(log.log_id, epoch, count)
        if first is not None:
            asking.granted(first)
        return first is not None

    async def open(self, log: LogAddress, dead_epoch: int, deadline: Deadline) -> Grant:
        """Refuse, because only a change of view activates this sequencer."""
        raise SequencerUnavailable(
            f"log {log}: the store's sequencer is not active, and only a new view activates it",
            hint="Append to the log. The append creates a view that activates the sequencer.",
        )

    async def next(self, log: LogAddress, count: int, epoch: int, deadline: Deadline) -> Grant:
        """Take ``count`` consecutive positions that are granted in this epoch.

        Raises:
            ValueError: ``count`` is not from 1 to 65536.
            StaleEpoch: the sequencer is not active in this epoch.
        """
        check_count(count)
        first = self._shared.next(log.log_id, epoch, count)
        return Grant(epoch, self._active(first, log, epoch))

    async def tail(self, log: LogAddress, epoch: int, deadline: Deadline) -> Grant:
        """Return the next position that will be granted. Raises StaleEpoch as ``next`` does."""
        tail = self._shared.tail(log.log_id, epoch)
        return Grant(epoch, self._active(tail, log, epoch))

    async def wait(
        self, log: LogAddress, epoch: int, position: int, timeout: float, deadline: Deadline
    ) -> Grant | None:
        """Wait until the tail is above ``position``. Returns None if the time passes first."""
        tail = self._shared.wait(log.log_id, epoch, position, deadline.within(timeout))
        if tail is None:
            await self.tail(log, epoch, deadline)  # the epoch may have ended
            return None
        return Grant(epoch, tail)

    async def status(self, deadline: Deadline) -> dict[str, object]:
        """Return only the address, because this sequencer has no counters."""
        return {"address": SHARED_ADDRESS}

    async def close(self) -> None:
        """Do nothing, because the memory belongs to the store."""

    @staticmethod
    def _active(position: int | None, log: LogAddress, epoch: int) -> int:
        if position is None:
            raise StaleEpoch(f"log {log}: the store's sequencer is not active in epoch {epoch}")
        return position


class _Waits:
    """The waits of all logs in an event loop.

    Attributes:
        threads: the number of waits that have a thread.
    """

    def __init__(self) -> None:
        self.threads = 0
        self._polled: dict[asyncio.Future[None], Callable[[], bool]] = {}
        self._timer = False

    async def poll(self, over: Callable[[], bool], seconds: float) -> None:
        """Wait until ``over()`` or the time passes. One timer serves all waits."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._polled[future] = over
        if not self._timer:
            self._timer = True
            loop.call_later(_POLL_SECONDS, self._check, loop)
        try:
            await asyncio.wait([future], timeout=seconds)
        finally:
            del self._polled[future]

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        for future, over in self._polled.items():
            if not future.done() and over():
                future.set_result(None)
        self._timer = bool(self._polled)
        if self._timer:
            loop.call_later(_POLL_SECONDS, self._check, loop)


_waits: WeakKeyDictionary[asyncio.AbstractEventLoop, _Waits] = WeakKeyDictionary()


class AsyncioSharedSequencer(SharedSequencerClient):
    """The client for tasks. It waits in a thread of its own, or polls if many logs wait."""

    def __init__(self, shared: SharedSequencer) -> None:
        super().__init__(shared)
        self._threads: ThreadPoolExecutor | None = None

    async def wait(
        self, log: LogAddress, epoch: int, position: int, timeout: float, deadline: Deadline
    ) -> Grant | None:
        """Wait until the tail is above ``position``. Returns None if the time passes first."""
        grant = await self.tail(log, epoch, deadline)
        patience = deadline.sooner(timeout)
        loop = asyncio.get_running_loop()
        waits = _waits.setdefault(loop, _Waits())
        while grant.position <= position:
            if patience.expired:
                return None
            if waits.threads < _THREADS_MAX:
                waits.threads += 1
                try:
                    await self._wait_in_thread(loop, log, epoch, position, patience)
                finally:
                    waits.threads -= 1
            else:

                def over() -> bool:
                    tail = self._shared.tail(log.log_id, epoch)
                    return tail is None or tail > position

                await waits.poll(over, patience.within(_POLLED_SECONDS))
            grant = await self.tail(log, epoch, deadline)
        return grant

    async def _wait_in_thread(
        self,
        loop: asyncio.AbstractEventLoop,
        log: LogAddress,
        epoch: int,
        position: int,
        patience: Deadline,
    ) -> None:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS_MAX, "zlog-wait")
        seconds = patience.within(_SLICE_SECONDS)
        wait = self._shared.wait
        await loop.run_in_executor(self._threads, wait, log.log_id, epoch, position, seconds)

    async def close(self) -> None:
        """Let the waiting threads end. They do so within a quarter of a second."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None
