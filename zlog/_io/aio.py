"""The Io for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from zlog._base.io import Started
from zlog._io.base import Batches, Driver
from zlog._native.calls import join
from zlog._sequencer import AsyncioSequencer, AsyncioSharedSequencer
from zlog.environment import world_of
from zlog.store import Start, Store

T = TypeVar("T")


class AsyncioIo(Driver):
    """The Io of a handle on the running event loop. It takes the arguments of :class:`Driver`.

    Attributes:
        completions: the loop's queue for replies.
    """

    def __init__(self, store: Store, what: str = "the handle") -> None:
        self._loop = asyncio.get_running_loop()
        world = world_of(self._loop)
        super().__init__(store, AsyncioSequencer.shared, AsyncioSharedSequencer, what, world)
        self.completions = join(self._loop, world)

    def monotonic(self) -> float:
        return self._loop.time()

    def _begin(self, start: Start, count: int) -> Started:
        self.check_open()
        return self.completions.begin(self, start, count)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        if not self._closed:
            self.completions.leave(self)
            del self.completions  # closes its descriptor if this was the last handle
        await super().close()


def drive(work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
    """Return the coroutine. In the API for threads, `blocking.drive` takes its place."""
    return work


async def iterate(reader: Batches[T]) -> AsyncIterator[T]:
    """Yield the items of a reader."""
    while (items := await reader.next()) is not None:
        for item in items:
            yield item
