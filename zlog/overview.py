"""The state of all logs of a store, as ``zlog top`` and ``zlog exporter`` show it.

Making an overview changes nothing and reads no entries. The tail that it shows is one past the last
entry in the log's objects, although higher positions may have been granted already.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from zlog._base.deadline import Deadline
from zlog._base.io import Io, deadline_of
from zlog._base.options import StripeLimits
from zlog._base.settings import HandleOptions
from zlog._catalog.directory import Directory
from zlog._client import LogClient
from zlog._io import AsyncioIo
from zlog._lifecycle import list_logs
from zlog._positions.stat import OffloadedStat, data_bytes, object_stats, plus
from zlog._sequencer import AsyncioSequencer, Credentials
from zlog.errors import LogNotFound, ZlogError
from zlog.limits import TIMEOUT_SECONDS
from zlog.read_only import ReadOnlyStore
from zlog.store import Store
from zlog.view import OPEN_END

__all__ = [
    "CursorOverview",
    "LogContent",
    "LogOverview",
    "StoreOverview",
    "log_names",
    "overview",
    "rates",
    "see_store",
]

_AT_ONCE = 32
"""How many logs are read at the same time."""


@dataclass(frozen=True, slots=True)
class CursorOverview:
    """A cursor of a log.

    Attributes:
        name: the cursor's name.
        position: the next position to read.
        lag: the number of positions from there to the tail.
        updated: when the reader last committed, by its clock, in seconds since 1970, UTC.
    """

    name: str
    position: int
    lag: int
    updated: float


@dataclass(frozen=True, slots=True)
class LogContent:
    """What a log's objects and its files of offloaded stripes contain.

    Attributes:
        entries: the number of entries that are not trimmed.
        bytes: the size of the entries' data.
        stored_bytes: the space that entries take in the objects.
        objects: the number of stripe objects.
        records: the number of records in the fullest object of the live stripe.
        fullness: how full that object is. When this reaches 1, a new stripe begins.
        ended_bytes: the size of the data in objects of ended stripes, which could be offloaded.
        offloaded_stripes, offloaded_entries, offloaded_bytes, file_bytes: what is in files; see
            :class:`zlog.OffloadedStat`. ``entries`` and ``bytes`` include it.
    """

    entries: int
    bytes: int
    stored_bytes: int
    objects: int
    records: int
    fullness: float
    ended_bytes: int = 0
    offloaded_stripes: int = 0
    offloaded_entries: int = 0
    offloaded_bytes: int = 0
    file_bytes: int = 0


@dataclass(frozen=True, slots=True)
class LogOverview:
    """The state of one log.

    Attributes:
        name: the log's name.
        id: the log's id, in hexadecimal. A log that is removed and created again gets another id.
        epoch: the epoch of the newest view.
        tail: one past the highest position that readers see. The log's true tail may be higher,
            because some granted positions may not be written yet.
        trim_point: all positions below it are trimmed.
        stripes: the number of stripes in the view, without archived ones.
        width: the number of stripe objects in the live stripe.
        stripe_unit: the number of consecutive positions in one object of the live stripe.
        sequencer: the sequencer's address; empty if writers find the tail themselves.
        ordering: ``object`` if the log is ordered by its object, else ``sequencer``.
        writer: the name of the exclusive writer; empty if the log is not exclusive.
        mirror: whether the log accepts entries only from its source.
        read_only: whether the log refuses all appends.
        options: the log's options, such as its retention.
        cursors: all cursors, by name.
        content: what the objects contain; None if it was not requested.
        error: why the log could not be read. If this is set, all other fields are invalid.
        at: the time of this overview, in seconds since 1970, UTC.
    """

    name: str
    id: str = ""
    epoch: int = 0
    tail: int = 0
    trim_point: int = 0
    stripes: int = 0
    width: int = 0
    stripe_unit: int = 0
    sequencer: str = ""
    ordering: str = "sequencer"
    writer: str = ""
    mirror: bool = False
    read_only: bool = False
    options: dict[str, str] = field(default_factory=dict)
    cursors: tuple[CursorOverview, ...] = ()
    content: LogContent | None = None
    error: str = ""
    at: float = 0.0

    @property
    def lag(self) -> int:
        """The largest lag of any cursor, or 0 if there are no cursors."""
        return max((cursor.lag for cursor in self.cursors), default=0)


@dataclass(frozen=True, slots=True)
class StoreOverview:
    """The state of a store.

    Attributes:
        url: the URL of the store.
        logs: the overviews of the logs, by name.
        sequencer: the status of the leading sequencer, as :func:`zlog.admin.sequencer_status`
            returns it. None if no sequencer is announced, or if it does not answer.
        sequencer_error: why the sequencer does not answer.
        at: the time of the call, in seconds since 1970, UTC.
        seconds: the duration of the call.
    """

    url: str
    logs: tuple[LogOverview, ...]
    sequencer: dict[str, Any] | None
    sequencer_error: str
    at: float
    seconds: float


def overview(
    store: Store,
    names: Collection[str] | None = None,
    *,
    content: bool = False,
    timeout: float | None = TIMEOUT_SECONDS,
) -> StoreOverview:
    """Return the state of a store's logs; see :func:`see_store`.

    Do not call this from a running event loop, because it starts its own.
    """
    return asyncio.run(see_store(store, names, content=content, timeout=timeout))


async def see_store(
    store: Store,
    names: Collection[str] | None = None,
    *,
    content: bool = False,
    timeout: float | None = TIMEOUT_SECONDS,
) -> StoreOverview:
    """Return the state of a store's logs. Many logs are read at the same time.

    If a log cannot be read, its overview has an ``error``. Logs that do not exist are left out.

    Args:
        names: the names of the logs; None means all.
        content: whether to include the objects' content, which takes a call to each of them.
        timeout: the budget for the list of names and for each log, in seconds; None means no limit.

    Raises:
        ZlogError: the names could not be read.
    """
    at, began = time.time(), time.monotonic()
    async with _reading(store) as io:
        wanted = await list_logs(io, deadline_of(io, timeout)) if names is None else [*names]
        turns = asyncio.Semaphore(_AT_ONCE)

        async def see(name: str) -> LogOverview | None:
            async with turns:
                try:
                    return await _see(io, name, content, timeout)
                except LogNotFound:
                    return None
                except ZlogError as error:
                    return LogOverview(name, error=str(error), at=time.time())

        (status, error), *found = await asyncio.gather(
            _sequencer(io, timeout), *(see(name) for name in wanted)
        )
    logs = tuple(log for log in found if log is not None)
    return StoreOverview(store.url, logs, status, error, at, time.monotonic() - began)


async def log_names(store: Store, *, timeout: float | None = TIMEOUT_SECONDS) -> list[str]:
    """Return the names of all logs, in order.

    Raises:
        ZlogError: the names could not be read.
    """
    async with _reading(store) as io:
        return await list_logs(io, deadline_of(io, timeout))


@asynccontextmanager
async def _reading(store: Store) -> AsyncIterator[AsyncioIo]:
    io = AsyncioIo(ReadOnlyStore(store), "the overview")
    try:
        yield io
    finally:
        await io.close()


async def _see(io: Io, name: str, content: bool, timeout: float | None) -> LogOverview:
    client = await LogClient.open(io, name, HandleOptions(timeout=timeout))
    deadline = client.deadline()
    tail = await client.positions.tail(deadline)
    view = client.layout.view
    cursors = tuple(
        CursorOverview(
            each.name, each.position, max(0, tail - each.position), each.updated.timestamp()
        )
        for each in await client.cursors.list(deadline)
    )
    return LogOverview(
        name=name,
        id=f"{view.log_id:016x}",
        epoch=view.epoch,
        tail=tail,
        trim_point=view.trim_point,
        stripes=len(view.stripes),
        width=view.live_stripe.width,
        stripe_unit=view.live_stripe.stripe_unit,
        sequencer=view.sequencer,
        ordering=view.ordering,
        writer="" if view.writer is None else view.writer.name,
        mirror=view.mirror,
        read_only=view.read_only,
        options=dict(view.options),
        cursors=cursors,
        content=await _content(client, tail, deadline) if content else None,
        at=time.time(),
    )


async def _content(client: LogClient, tail: int, deadline: Deadline) -> LogContent:
    layout = client.layout
    entries = size = stored = objects = records = stream = ended = 0
    offloaded = OffloadedStat()
    async for stripe in layout.stripes(0, OPEN_END, deadline):
        found = await object_stats(layout, stripe, deadline)
        own = sum(each.entries for each in found), sum(data_bytes(layout, each) for each in found)
        entries, size = entries + own[0], size + own[1]
        stored += sum(each.stored_bytes or 0 for each in found)
        if file := layout.offloaded.file_of(stripe):
            offloaded = plus(offloaded, 1, *own, file.size)
        else:
            objects += stripe.width
            ended += 0 if stripe.open else own[1]
        records = max((each.records for each in found), default=0)  # the live stripe is the last
        stream = max((each.stream_bytes for each in found), default=0)
    live = layout.view.live_stripe
    positions = max(0, tail - live.start) / live.width
    fullness = StripeLimits.of(layout.view.options).fullness(records, stream, positions)
    held = entries, size, stored, objects, records
    return LogContent(*held, round(fullness, 4), ended, *offloaded)


async def _sequencer(io: Io, timeout: float | None) -> tuple[dict[str, Any] | None, str]:
    """Return the status of the announced sequencer, or the reason why it does not answer."""
    deadline = deadline_of(io, timeout)
    try:
        address = await Directory(io).sequencer(deadline)
        if not address or "://" not in address:
            return None, ""
        client = AsyncioSequencer(address, Credentials.of(io.store.url))
        try:
            return dict(await client.status(deadline)), ""
        finally:
            with suppress(ZlogError):
                await client.close()
    except (ZlogError, OSError) as error:
        return None, str(error)


def rates(before: LogOverview, after: LogOverview) -> tuple[float, float]:
    """Return how fast a log grows, in positions per second and in bytes of data per second.

    Both rates are 0 if the overviews are of different logs. The byte rate is also 0 if the content
    of an overview was not read.
    """
    seconds = after.at - before.at
    if seconds <= 0 or before.id != after.id or after.error:
        return 0.0, 0.0
    positions = max(0, after.tail - before.tail) / seconds
    if before.content is None or after.content is None:
        return positions, 0.0
    return positions, max(0, after.content.bytes - before.content.bytes) / seconds
