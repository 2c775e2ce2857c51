"""Handles of the logs that requests use."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary

import zlog
import zlog.aio
from zlog.web._stream import Stream

_OPEN_MAX = 1000
"""How many logs without users stay open."""


class StaleHandle(zlog.LogNotFound):
    """The log of an earlier handle was removed. Repeat the request, which opens its successor."""


@dataclass
class Handle:
    """An open log, the stream that it holds, if any, and the number of users of the handle."""

    log: zlog.aio.Log
    stream: Stream | None
    users: int = 0


class Handles:
    """Opens logs for requests, and keeps recently used ones open."""

    def __init__(self, store: zlog.Store, timeout: float | None) -> None:
        self.store = store
        self.timeout = timeout
        self.open: OrderedDict[str, Handle] = OrderedDict()
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def use(self, name: str) -> AsyncIterator[Handle]:
        """Provide the handle of a log for a ``with`` block.

        Raises:
            LogNotFound: the log does not exist.
            StaleHandle: the log was removed. Another one may have its name now.
        """
        reused = name in self.open
        if not reused:
            async with self._opening.setdefault(name, asyncio.Lock()):
                if name not in self.open:
                    log = await zlog.aio.Log.open(self.store, name, timeout=self.timeout)
                    self.open[name] = Handle(log, Stream.of(log))
        handle = self.open[name]
        self.open.move_to_end(name)
        handle.users += 1
        try:
            yield handle
        except zlog.LogNotFound as error:
            self.drop(handle)
            if reused:
                raise StaleHandle(str(error)) from None
            raise
        finally:
            handle.users -= 1
            if not handle.users and self.open.get(name) is not handle:
                await self._close(handle)
            if len(self.open) > _OPEN_MAX:
                idle = [each for each in self.open.values() if not each.users]
                for each in idle[: len(self.open) - _OPEN_MAX]:
                    self.drop(each)
                    await self._close(each)

    def drop(self, handle: Handle) -> None:
        """Let the next request open the log again."""
        if self.open.get(handle.log.name) is handle:
            del self.open[handle.log.name]

    async def close(self) -> None:
        """Close all handles."""
        while self.open:
            await self._close(self.open.popitem()[1])

    async def _close(self, handle: Handle) -> None:
        if handle.stream is not None:
            await handle.stream.live.close()
        await handle.log.close()
