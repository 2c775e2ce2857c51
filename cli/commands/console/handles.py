"""Handles of the logs that browsers view."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

import zlog
import zlog.aio

_OPEN_MAX = 64


class Handles:
    """Opens logs for requests, and keeps up to 64 recently used ones open.

    Args:
        store: the store with the logs.
        timeout: the timeout for each call, in seconds.
        mac_key: the key for logs with MACs; None if the user gave no key.
    """

    def __init__(self, store: zlog.Store, timeout: float | None, mac_key: bytes | None) -> None:
        self._store = store
        self._timeout = timeout
        self._mac_key = mac_key
        self._open: OrderedDict[str, zlog.aio.Log] = OrderedDict()
        self._users: dict[zlog.aio.Log, int] = {}
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def use(self, name: str) -> AsyncIterator[zlog.aio.Log]:
        """Provide a handle on a log for a ``with`` block. Open the log if it is not open yet.

        Raises:
            LogNotFound: the log does not exist.
        """
        opening = self._opening.setdefault(name, asyncio.Lock())
        async with opening:
            log = self._open.get(name)
            if log is None:
                log = self._open[name] = await zlog.aio.Log.open(
                    self._store,
                    name,
                    timeout=self._timeout,
                    hole_timeout=None,
                    mac_key=self._mac_key,
                )
            self._open.move_to_end(name)
            self._users[log] = self._users.get(log, 0) + 1
        try:
            yield log
        except zlog.LogNotFound:
            if self._open.get(name) is log:
                del self._open[name]
            raise
        finally:
            self._users[log] -= 1
            await self._close_some(_OPEN_MAX)

    async def close(self) -> None:
        """Close all handles."""
        await self._close_some(0)

    async def _close_some(self, left: int) -> None:
        for name in [*self._open][: max(0, len(self._open) - left)]:
            if not self._users[self._open[name]]:
                del self._open[name]
        known = {id(log) for log in self._open.values()}
        for log in [log for log, users in self._users.items() if not users]:
            if id(log) not in known:
                del self._users[log]
                await log.close()
