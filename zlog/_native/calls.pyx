"""Calls in progress on an event loop, and the queue for their replies."""

from cython.operator cimport dereference as deref
from libc.stdint cimport uint64_t
from libcpp.vector cimport vector

from zlog._native.completions cimport CompletionQueue, reply_of
from zlog._native.host cimport CppCompletion

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from zlog._base.deadline import Deadline
from zlog._base.io import TIMED_OUT, Reply
from zlog.environment import World
from zlog.store import Start


cdef enum:  # a token has the number of its calls in the upper bits, and the call's in the lower
    CALL_BITS = 32
    CALL_MASK = 0xFFFFFFFF

KEY = "completions"


cdef class Calls:
    """Calls that were started together.

    Attributes:
        handle: the handle that started them.
    """

    cdef int expect(self, Py_ssize_t count) except -1:
        self.replies, self.left = [TIMED_OUT] * count, count
        return 0

    cdef int end(self) except -1:
        callback, self.callback = self.callback, None
        if callback is not None:
            callback()
        elif self.over is not None and not self.over.done():
            self.over.set_result(None)
        return 0

    def on_end(self, callback: Callable[[], object] | None) -> None:
        """Call a function once all replies have come. None takes the last function back."""
        self.callback = callback

    cdef int give_up(self) except -1:
        if self.left and self.under_way is not None:
            self.under_way.give_up()
        self.left = 0
        return 0

    @property
    def all_ok(self) -> bool:
        """Whether all replies have come and are OK."""
        return not any(code for code, _ in self.replies)

    def finish(self, deadline: Deadline) -> Coroutine[Any, Any, list[Reply]]:
        """Wait for the replies, and return them in order: TIMED_OUT for those that are missing."""
        return _finish(self, deadline)


async def _finish(Calls calls, deadline):
    if calls.left:
        calls.over = calls.loop.create_future()
        left = deadline.remaining()
        timer = None if left is None else calls.loop.call_later(left, _expire, calls)
        try:
            await calls.over
        finally:
            if timer is not None:
                timer.cancel()
            calls.give_up()
    return [*calls.replies]


def _expire(Calls calls):
    calls.end()


def join(loop: asyncio.AbstractEventLoop, world: World) -> Completions:
    """Return the queue of an event loop, and count one more handle."""
    local = world.local(loop)
    cdef Completions found = local.get(KEY)
    if found is None:
        found = local[KEY] = Completions(loop, world)
    found.handles += 1
    return found


cdef class Completions:
    """Wakes an event loop, through one file descriptor, when calls of its handles are answered.

    All handles on the loop share this object, which exists as long as one of them is open.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, world: World):
        """Watch a new queue. Handles call `join` instead of this class."""
        self.loop, self.world = loop, world
        self.queue = CompletionQueue()
        self.waiting = {}
        loop.add_reader(self.queue.fileno(), self.drain)

    def __len__(self) -> int:
        """Return how many groups of calls are in progress."""
        return len(self.waiting)

    def leave(self, handle: object) -> None:
        """Remove a handle. The replies to its calls in progress are lost."""
        cdef Calls calls
        for number, calls in [*self.waiting.items()]:
            if calls.handle is handle:
                del self.waiting[number]
                calls.give_up()
                calls.end()
        self.handles -= 1
        if not self.handles:
            self.loop.remove_reader(self.queue.fileno())
            del self.world.local(self.loop)[KEY]

    def begin(self, handle: object, start: Start, Py_ssize_t count) -> Calls:
        """Start a handle's calls, which get ``count`` replies."""
        cdef Calls calls = Calls.__new__(Calls)
        calls.loop, calls.handle = self.loop, handle
        calls.expect(count)
        self.start(calls, start)
        return calls

    cdef int start(self, Calls calls, start) except -1:
        cdef uint64_t group = self.groups
        self.groups += 1
        calls.under_way = start(self.queue, group << CALL_BITS)
        if calls.left:
            self.waiting[group] = calls
        return 0

    def drain(self) -> None:
        """Pass on the replies that have arrived."""
        cdef vector[CppCompletion] arrived
        cdef Calls calls
        cdef size_t i
        self.queue.check_process()
        arrived = deref(self.queue.queue).drain()
        for i in range(arrived.size()):
            group = arrived[i].token >> CALL_BITS
            calls = self.waiting.get(group)
            if calls is None:
                continue
            reply = Reply(arrived[i].code, reply_of(arrived[i].reply))
            calls.replies[<Py_ssize_t> (arrived[i].token & CALL_MASK)] = reply
            calls.left -= 1
            if not calls.left:
                del self.waiting[group]
                calls.end()
