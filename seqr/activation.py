"""Taking logs over and letting them go, through zlog's own change of view.

The steps (epoch, seal, highest position, view) are in ``zlog._views`` and the same for everybody
who changes a layout; here they are run in whatever pool of the cluster a client names. Which pools
that can be, the capabilities of the sequencer's Ceph user decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

from zlog._deadline import Deadline
from zlog._head import Directory, Head
from zlog._io import AsyncioIo, deadline_of
from zlog._sequencer.types import Grant, LogAddress
from zlog._views import release, take_over
from zlog.errors import LogNotFound, StoreUnavailable
from zlog.seqr.limits import Limits
from zlog.store import Store


class Place(NamedTuple):
    """A pool of the cluster, and a namespace in it; both are empty without Ceph."""

    pool: str
    namespace: str

    @classmethod
    def parse(cls, text: str) -> Place:
        """Read ``POOL`` or ``POOL/NAMESPACE``.

        Raises:
            ValueError: it is neither.
        """
        pool, _, namespace = text.partition("/")
        if not pool or "/" in namespace:
            raise ValueError(f"{text!r} is not POOL or POOL/NAMESPACE")
        return cls(pool, namespace)


class Stores:
    """The stores of one cluster that the sequencer has open, by pool and namespace.

    Args:
        first: the store that the sequencer was started with; it stays the caller's.
        connect: opens another one from its URL, and blocks meanwhile.
        limits: see there.
    """

    def __init__(self, first: Store, connect: Callable[[str], Store], limits: Limits) -> None:
        self.first = AsyncioIo(first)
        self._connect = connect
        self._limits = limits
        self._others: dict[Place, asyncio.Future[AsyncioIo]] = {}

    async def of(self, place: Place) -> AsyncioIo:
        """Return the Io of the store that is this pool and namespace.

        Raises:
            LogNotFound: it names a pool, and this store has none.
            StoreUnavailable: the pool can't be opened.
        """
        first = self.first.store
        if place == (first.pool, first.namespace):
            return self.first
        if not (first.pool and place.pool):
            raise LogNotFound(f"{first.url} has no pool {place.pool!r}")
        opening = self._others.get(place)
        if opening is None:
            if len(self._others) >= self._limits.stores_max:
                raise StoreUnavailable(f"{len(self._others)} pools and namespaces are open already")
            opening = self._others[place] = asyncio.ensure_future(self._open(place))
            opening.add_done_callback(lambda done: self._forget_failed(place, done))
        return await asyncio.shield(opening)

    async def close(self) -> None:
        """Close everything but the first store itself."""
        for opening in list(self._others.values()):
            if opening.done():
                io = opening.result()
                await io.close()
                io.store.close()
            else:
                opening.cancel()
        await self.first.close()

    async def _open(self, place: Place) -> AsyncioIo:
        url = urlsplit(self.first.store.url)
        path = f"/{quote(place.namespace, safe='')}" if place.namespace else ""
        target = urlunsplit((url.scheme, quote(place.pool, safe=""), path, url.query, ""))
        loop = asyncio.get_running_loop()
        return AsyncioIo(await loop.run_in_executor(None, self._connect, target))

    def _forget_failed(self, place: Place, opening: asyncio.Future[AsyncioIo]) -> None:
        if opening.cancelled() or opening.exception() is not None:
            del self._others[place]


class Leadership:
    """Makes this sequencer the one of a log, and ends that.

    Args:
        stores: where the logs are.
        address: what views and the directory say of this sequencer, ``tcp://HOST:PORT``.
        limits: see there.
        also: places beside the first store's own in which it offers itself.
    """

    def __init__(
        self, stores: Stores, address: str, limits: Limits, also: Sequence[Place] = ()
    ) -> None:
        self._stores = stores
        self._address = address
        self._limits = limits
        first = stores.first.store
        self._places = (Place(first.pool, first.namespace), *also)

    async def announce(self) -> None:
        """Offer this sequencer to clients whose log has none."""
        for place in self._places:
            io = await self._stores.of(place)
            await Directory(io).announce(self._address, self._deadline(io))

    async def withdraw(self) -> None:
        """Take the offers back, unless another sequencer has made its own since."""
        for place in self._places:
            io = await self._stores.of(place)
            await Directory(io).withdraw(self._address, self._deadline(io))

    async def activate(self, log: LogAddress) -> Grant:
        """Take a log over, in an epoch above every earlier one.

        Raises:
            LogNotFound: no log of this name, or another one than that of the given id.
            NotLeader: its newest view names another sequencer.
            ZlogError: the store did not do its part.
        """
        io = await self._stores.of(Place(log.pool, log.namespace))
        deadline = self._deadline(io)
        # Asked first so that whoever still knows an old log does not disturb the new one; asked
        # again because the name may have changed hands meanwhile.
        _check_id(log, (await Head(io, log.name).read(deadline)).log_id)
        change = await take_over(io, log.name, self._address, deadline)
        _check_id(log, change.view.log_id)
        return Grant(change.view.epoch, change.tail)

    async def release(self, log: LogAddress) -> None:
        """Let a log go on without this sequencer, if its newest view still names it."""
        io = await self._stores.of(Place(log.pool, log.namespace))
        await release(io, log.name, self._address, self._deadline(io))

    def _deadline(self, io: AsyncioIo) -> Deadline:
        return deadline_of(io, self._limits.activation_s_max)


def _check_id(log: LogAddress, log_id: int) -> None:
    if log_id != log.log_id:
        raise LogNotFound(f"log {log} was removed; another one has its name")
