"""The namespaces that a sequencer serves, in pools of one cluster, and their open stores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

from zlog._base.sequencer import LogAddress
from zlog._io import AsyncioIo
from zlog.errors import LogNotFound, StoreUnavailable
from zlog.seqr.limits import Limits
from zlog.store import Store


class Namespace(NamedTuple):
    """A pool of the cluster and a namespace in it. Without Ceph, both are empty."""

    pool: str
    name: str

    @classmethod
    def of(cls, log: LogAddress) -> Namespace:
        """Return the namespace of a log."""
        return cls(log.pool, log.namespace)

    @classmethod
    def parse(cls, text: str) -> Namespace:
        """Parse ``POOL`` or ``POOL/NAMESPACE``. Raises ValueError if it is neither."""
        pool, _, name = text.partition("/")
        if not pool or "/" in name:
            raise ValueError(f"{text!r} is not POOL or POOL/NAMESPACE")
        return cls(pool, name)

    def __str__(self) -> str:
        return "/".join(part for part in self if part) or "the store"


class Stores:
    """The open stores of one cluster, by namespace.

    Args:
        first: the store that the sequencer was started with. The caller closes it.
        connect: a blocking function that opens another store by its URL.
    """

    def __init__(self, first: Store, connect: Callable[[str], Store], limits: Limits) -> None:
        self.first = AsyncioIo(first)
        self.home = Namespace(first.pool, first.namespace)
        self._connect = connect
        self._limits = limits
        self._others: dict[Namespace, asyncio.Future[AsyncioIo]] = {}

    async def of(self, namespace: Namespace) -> AsyncioIo:
        """Return the I/O of a namespace's store. Open the store if it is not open yet.

        Raises:
            LogNotFound: the sequencer's own store or the namespace is not on Ceph.
            StoreUnavailable: the pool cannot be opened.
        """
        first = self.first.store
        if namespace == self.home:
            return self.first
        if not (first.pool and namespace.pool):
            raise LogNotFound(f"{first.url} has no pool {namespace.pool!r}")
        opening = self._others.get(namespace)
        if opening is None:
            if len(self._others) >= self._limits.stores_max:
                raise StoreUnavailable(f"{len(self._others)} pools and namespaces are open already")
            opening = self._others[namespace] = asyncio.ensure_future(self._open(namespace))
            opening.add_done_callback(lambda done: self._forget_failed(namespace, done))
        return await asyncio.shield(opening)

    async def close(self) -> None:
        """Close all stores except the first, whose Io is closed."""
        for opening in [*self._others.values()]:
            if opening.done():
                io = opening.result()
                await io.close()
                io.store.close()
            else:
                opening.cancel()
        await self.first.close()

    async def _open(self, namespace: Namespace) -> AsyncioIo:
        url = urlsplit(self.first.store.url)
        path = f"/{quote(namespace.name, safe='')}" if namespace.name else ""
        target = urlunsplit((url.scheme, quote(namespace.pool, safe=""), path, url.query, ""))
        return AsyncioIo(await asyncio.to_thread(self._connect, target))

    def _forget_failed(self, namespace: Namespace, opening: asyncio.Future[AsyncioIo]) -> None:
        if opening.cancelled() or opening.exception() is not None:
            del self._others[namespace]
