"""The Io for threads, and functions that run calls with it."""

from __future__ import annotations

import time
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, TypeVar

from zlog._base.deadline import Deadline
from zlog._base.io import TIMED_OUT, Call, Reply, Started
from zlog._io.base import Batches, Driver
from zlog._native.completions import CompletionQueue
from zlog._native.mutex import begin_call
from zlog._native.window import Items
from zlog._sequencer import BlockingSequencer, SharedSequencerClient
from zlog.store import Start, Store

T = TypeVar("T")


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine whose awaits all block, and return its result.

    Raises:
        ReentrantCall: a signal handler called this during a critical section.
    """
    begin_call(coroutine)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    coroutine.close()
    raise AssertionError("a coroutine driven without an event loop suspended")


def iterate(reader: Batches[T]) -> Iterator[T]:
    """Return an iterator over the items of a reader."""
    return Items(lambda: drive(reader.next()))


class BlockingIo(Driver):
    """An Io whose coroutines block the calling thread. Several threads can use it at once."""

    monotonic = staticmethod(time.monotonic)  # not wrapped, because an append calls it ten times

    def __init__(self, store: Store, what: str = "the handle") -> None:
        super().__init__(store, BlockingSequencer.shared, SharedSequencerClient, what)

    async def execute(self, calls: Sequence[Call], deadline: Deadline) -> list[Reply]:
        self.check_open()
        if len(calls) == 1 and type(calls[0].object) is str:
            return [Reply(*self.store.execute(*calls[0], timeout=deadline.remaining()))]
        return await super().execute(calls, deadline)

    def _begin(self, start: Start, count: int) -> Started:
        self.check_open()
        return _BlockingCalls(start, count)

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - this Io blocks on purpose, see drive()


class _BlockingCalls:
    """Calls in progress. They have their own queue, so that they can be abandoned."""

    def __init__(self, start: Start, count: int) -> None:
        self._queue = CompletionQueue()
        self._replies = [TIMED_OUT] * count
        self._under_way = start(self._queue, 0)

    async def finish(self, deadline: Deadline) -> list[Reply]:
        waiting = len(self._replies)
        try:
            while waiting and self._queue.wait(deadline.remaining()):
                for index, code, payload in self._queue.drain():
                    self._replies[index] = Reply(code, payload)
                    waiting -= 1
        finally:
            if waiting and self._under_way is not None:
                self._under_way.give_up()
        return self._replies
