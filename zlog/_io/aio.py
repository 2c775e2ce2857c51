"""Io of an event loop."""

from __future__ import annotations

import asyncio
import itertools

from zlog._base.deadline import Deadline
from zlog._base.environment import world_of
from zlog._base.io import TIMED_OUT, Reply, Started
from zlog._io.base import Driver
from zlog._native.core import CompletionQueue, UnderWay
from zlog._sequencer import AsyncioSequencer, AsyncioSharedSequencer
from zlog.store import Start, Store

_CALL_BITS = 32
_CALL_MASK = (1 << _CALL_BITS) - 1
"""A completion's token: the group of calls in the upper bits, which of them in the lower ones."""


class AsyncioIo(Driver):
    """Io of one running event loop: completions wake the loop through one file descriptor.

    Args:
        store: where calls run.
        what: whose it is, for the message that it is closed.
    """

    def __init__(self, store: Store, what: str = "the handle") -> None:
        self._loop = asyncio.get_running_loop()
        world = world_of(self._loop)
        super().__init__(store, AsyncioSequencer, AsyncioSharedSequencer, what, world)
        self._queue = CompletionQueue()
        self._groups = itertools.count()
        self._waiting: dict[int, _AsyncioCalls] = {}
        self._loop.add_reader(self._queue.fileno(), self._drain)

    def monotonic(self) -> float:
        return self._loop.time()

    def _begin(self, start: Start, count: int) -> Started:
        self._check_open()
        number = next(self._groups)
        group = _AsyncioCalls(self._loop, count)
        self._waiting[number] = group
        try:
            group.under_way = start(self._queue, number << _CALL_BITS)
        except BaseException:
            del self._waiting[number]
            raise
        return group

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        if not self._closed:
            self._loop.remove_reader(self._queue.fileno())
            # Replies are not taken out any more: what is under way has no known outcome.
            for group in self._waiting.values():
                group.give_up()
            self._waiting.clear()
        await super().close()

    def _drain(self) -> None:
        for token, code, payload in self._queue.drain():
            number = token >> _CALL_BITS
            group = self._waiting.get(number)
            if group is not None and group.put(token & _CALL_MASK, Reply(code, payload)):
                del self._waiting[number]


class _AsyncioCalls:
    """Calls under way on an event loop, with one future for all of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, count: int) -> None:
        self._loop = loop
        self._replies = [TIMED_OUT] * count
        self._left = count
        self.under_way: UnderWay | None = None
        self._over: asyncio.Future[None] = loop.create_future()
        if not count:
            self.give_up()

    def put(self, index: int, reply: Reply) -> bool:
        """Take in a reply; returns whether it is the last one."""
        self._replies[index] = reply
        self._left -= 1
        if not self._left:
            self.give_up()
        return not self._left

    def give_up(self) -> None:
        """Wait no longer for what is not there yet."""
        if not self._over.done():
            self._over.set_result(None)

    async def finish(self, deadline: Deadline) -> list[Reply]:
        left = deadline.remaining()
        timer = None if left is None else self._loop.call_later(left, self.give_up)
        try:
            await self._over
        finally:
            if timer is not None:
                timer.cancel()
            if self._left and self.under_way is not None:
                self.under_way.give_up()
        return [*self._replies]
