"""All logs of a store at a glance: what ``zlog top`` and ``zlog exporter`` show.

To look changes nothing: no sequencer takes a log over for it, and no entry is read. The tail is
where the log's objects end, which lies below positions that were handed out and not yet written.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from zlog._base.deadline import Deadline
from zlog._base.io import Io, deadline_of
from zlog._base.options import StripeLimits
from zlog._base.settings import HandleOptions
from zlog._catalog.directory import Directory
from zlog._client import LogClient
from zlog._io import AsyncioIo
from zlog._positions.stat import data_bytes, object_stats
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
    "see_log",
    "see_store",
]

_AT_ONCE = 32
"""Logs that are looked at together."""


@dataclass(frozen=True, slots=True)
class CursorOverview:
    """A cursor of a log.

    Attributes:
        name: the cursor's.
        position: the next one that its reader will read.
        lag: positions from there to the tail.
        updated: when it was last committed, by that reader's clock: seconds since 1970, UTC.
    """

    name: str
    position: int
    lag: int
    updated: float


@dataclass(frozen=True, slots=True)
class LogContent:
    """What the objects of a log hold; each of them was asked.

    Attributes:
        entries: that are not trimmed.
        bytes: their data together.
        stored_bytes: what that takes in the objects.
        objects: how many there are.
        records: stored in the fullest object of the live stripe.
        fullness: of that object: a new stripe begins at 1.
    """

    entries: int
    bytes: int
    stored_bytes: int
    objects: int
    records: int
    fullness: float


@dataclass(frozen=True, slots=True)
class LogOverview:
    """A log.

    Attributes:
        name: see there.
        id: tells it from other logs that had its name, in hexadecimal.
        epoch: of the newest view.
        tail: one past the highest position that its readers see; with positions that were handed
            out and not written yet it may lie higher.
        trim_point: positions below it are trimmed.
        stripes: of the view; those in the archive are not among them.
        width: stripe objects of the live stripe.
        unit: positions in a row that lie in one of them.
        sequencer: its address; empty: writers find the tail themselves.
        writer: who writes an exclusive log; empty: it is none.
        mirror: whether it takes entries from its source only.
        read_only: whether it takes none.
        options: of the log, such as its retention.
        cursors: all, by name.
        content: what its objects hold; None: they were not asked.
        error: why nothing is known of it; all else has no meaning then.
        at: when it was looked at: seconds since 1970, UTC.
    """

    name: str
    id: str = ""
    epoch: int = 0
    tail: int = 0
    trim_point: int = 0
    stripes: int = 0
    width: int = 0
    unit: int = 0
    sequencer: str = ""
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
        """That of the cursor that is furthest behind; 0 without any."""
        return max((cursor.lag for cursor in self.cursors), default=0)


@dataclass(frozen=True, slots=True)
class StoreOverview:
    """A store.

    Attributes:
        url: of the store.
        logs: by name.
        sequencer: what the one that leads says of itself, as :func:`zlog.admin.sequencer_status`
            returns it; None: none is announced, or it does not answer.
        sequencer_error: why it does not.
        at: when this was begun: seconds since 1970, UTC.
        seconds: that it took.
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
    """Look at logs of a store, many at once; see :func:`see_store`.

    It runs an event loop: call it from where none runs.
    """
    return asyncio.run(see_store(store, names, content=content, timeout=timeout))


async def see_store(
    store: Store,
    names: Collection[str] | None = None,
    *,
    content: bool = False,
    timeout: float | None = TIMEOUT_SECONDS,
) -> StoreOverview:
    """Look at logs of a store, many at once.

    A log that can't be looked at has an ``error``, and the others are there. One that is removed
    meanwhile, or half made, is left out.

    Args:
        store: see there.
        names: of the logs; None: all.
        content: ask the objects of all stripes what they hold: a call for each.
        timeout: for the names, and for each log, in seconds; None: as long as it takes.

    Raises:
        ZlogError: not even the names could be read.
    """
    at, began = time.time(), time.monotonic()
    io = AsyncioIo(ReadOnlyStore(store), "the overview")
    try:
        wanted = [name async for name in _names(io, timeout)] if names is None else [*names]
        turns = asyncio.Semaphore(_AT_ONCE)

        async def see(name: str) -> LogOverview | None:
            async with turns:
                return await see_log(io, name, content=content, timeout=timeout)

        (status, error), *found = await asyncio.gather(
            _sequencer(io, timeout), *(see(name) for name in wanted)
        )
    finally:
        await io.close()
    logs = tuple(log for log in found if log is not None)
    return StoreOverview(store.url, logs, status, error, at, time.monotonic() - began)


async def log_names(store: Store, *, timeout: float | None = TIMEOUT_SECONDS) -> list[str]:
    """Return the names of all logs, in order.

    Raises:
        ZlogError: they could not be read.
    """
    io = AsyncioIo(ReadOnlyStore(store), "the overview")
    try:
        return [name async for name in _names(io, timeout)]
    finally:
        await io.close()


async def _names(io: Io, timeout: float | None) -> AsyncIterator[str]:
    async for page in Directory(io).logs.pages(deadline_of(io, timeout)):
        for name in page:
            yield name


async def see_log(
    io: Io, name: str, *, content: bool = False, timeout: float | None = TIMEOUT_SECONDS
) -> LogOverview | None:
    """Look at one log of a store that is read-only; None: there is none. See :func:`see_store`."""
    try:
        options = HandleOptions(timeout=timeout)
        return await _see(io, name, content, deadline_of(io, timeout), options)
    except LogNotFound:
        return None
    except ZlogError as error:
        return LogOverview(name, error=str(error), at=time.time())


async def _see(
    io: Io, name: str, content: bool, deadline: Deadline, options: HandleOptions
) -> LogOverview:
    client = await LogClient.open(io, name, options)
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
        unit=view.live_stripe.unit,
        sequencer=view.sequencer,
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
    entries = size = stored = objects = records = stream = 0
    async for stripe in layout.stripes(0, OPEN_END, deadline):
        objects += stripe.width
        found = await object_stats(layout, stripe, deadline)
        for each in found:
            entries += each.entries
            size += data_bytes(layout, each)
            stored += each.bytes if each.stored_bytes is None else each.stored_bytes
        records = max((each.records for each in found), default=0)  # the live stripe is the last
        stream = max((each.stream_bytes for each in found), default=0)
    live = layout.view.live_stripe
    positions = max(0, tail - live.start) / live.width
    fullness = StripeLimits.of(layout.view.options).fullness(records, stream, positions)
    return LogContent(entries, size, stored, objects, records, round(fullness, 4))


async def _sequencer(io: Io, timeout: float | None) -> tuple[dict[str, Any] | None, str]:
    """Return what the announced sequencer says of itself, and why it says nothing."""
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
    """Return by how much a log has grown per second: in positions, and in stored bytes.

    Both are 0 where the two are not of the same log; bytes also without their content.
    """
    seconds = after.at - before.at
    if seconds <= 0 or before.id != after.id or after.error:
        return 0.0, 0.0
    positions = max(0, after.tail - before.tail) / seconds
    if before.content is None or after.content is None:
        return positions, 0.0
    return positions, max(0, after.content.bytes - before.content.bytes) / seconds
