"""Calls in progress on an event loop, and the queue for their answers."""

from __future__ import annotations

import asyncio
import itertools

from zlog._base.deadline import Deadline
from zlog._base.io import TIMED_OUT, Reply
from zlog._native.completions import CompletionQueue
from zlog._native.stores import UnderWay
from zlog.environment import World
from zlog.store import Start

_CALL_BITS = 32
_CALL_MASK = (1 << _CALL_BITS) - 1
"""A token has the number of its group of calls in the upper bits, and the call's in the lower."""

_KEY = "completions"


class Completions:
    """Wakes an event loop, through one file descriptor, when calls of its handles are answered.

    All handles on the loop share this object, which exists as long as one of them is open.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, world: World) -> None:
        """Watch a new queue. Handles call :meth:`join` instead of this."""
        self._loop = loop
        self._world = world
        self._queue = CompletionQueue()
        self._handles = 0
        self._numbers = itertools.count()
        self._waiting: dict[int, CallsUnderWay] = {}
        loop.add_reader(self._queue.fileno(), self._drain)

    @classmethod
    def join(cls, loop: asyncio.AbstractEventLoop, world: World) -> Completions:
        """Return the loop's object, and count one more handle."""
        local = world.local(loop)
        found: Completions | None = local.get(_KEY)
        if found is None:
            found = local[_KEY] = cls(loop, world)
        found._handles += 1
        return found

    def leave(self, handle: object) -> None:
        """Remove a handle. The results of its calls in progress are lost."""
        for number, calls in [*self._waiting.items()]:
            if calls.handle is handle:
                del self._waiting[number]
                calls.give_up()
        self._handles -= 1
        if not self._handles:
            self._loop.remove_reader(self._queue.fileno())
            del self._world.local(self._loop)[_KEY]

    def begin(self, handle: object, start: Start, count: int) -> CallsUnderWay:
        """Start a handle's calls, which get ``count`` replies."""
        number = next(self._numbers)
        calls = CallsUnderWay(self._loop, handle, count)
        calls.under_way = start(self._queue, number << _CALL_BITS)
        if count:  # else no reply would remove it
            self._waiting[number] = calls
        return calls

    def _drain(self) -> None:
        for token, code, payload in self._queue.drain():
            number = token >> _CALL_BITS
            calls = self._waiting.get(number)
            if calls is not None and calls.put(token & _CALL_MASK, Reply(code, payload)):
                del self._waiting[number]


class CallsUnderWay:
    """Calls that were started together. One future waits for all their replies.

    Attributes:
        handle: the handle that started the calls.
        under_way: the object with which the calls are abandoned.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, handle: object, count: int) -> None:
        self.handle = handle
        self.under_way: UnderWay | None = None
        self._loop = loop
        self._replies = [TIMED_OUT] * count
        self._left = count
        self._over: asyncio.Future[None] = loop.create_future()
        if not count:
            self.give_up()

    def put(self, index: int, reply: Reply) -> bool:
        """Store a reply. Returns whether it is the last one."""
        self._replies[index] = reply
        self._left -= 1
        if not self._left:
            self.give_up()
        return not self._left

    def give_up(self) -> None:
        """Stop waiting for the missing replies."""
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
