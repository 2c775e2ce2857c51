"""A log for asyncio: what :mod:`zlog.log` is for threads."""

from __future__ import annotations

import builtins
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
)
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from zlog._append.coalesce import Coalescer
from zlog._append.delivery_records import DeliveryKey, DeliverySource
from zlog._append.place import open_to_all, set_read_only
from zlog._append.room import Limits
from zlog._audit.check import Progress
from zlog._audit.position_map import PositionMap, map_of
from zlog._base.deadline import Timeout
from zlog._base.io import Io, deadline_of
from zlog._base.mac import MacKeySource, key_of
from zlog._base.options import merged_options
from zlog._base.settings import Settings
from zlog._client import LogClient, Tags, entry_stream, new_entries, new_entry, new_log
from zlog._io import AsyncioIo
from zlog._layout.reconfigure import reconfigure, roll
from zlog._lifecycle import NewLog, list_logs, remove_log
from zlog._log.handle import LogHandle
from zlog._log.writer import WINDOW_BYTES
from zlog._native.core import tags_checked
from zlog._positions.positions import PositionSpec
from zlog._positions.stat import LogStat, stat
from zlog._read.columns import Columns
from zlog._read.cursors import CursorState
from zlog._read.select import Match
from zlog._transfer.promote import promote
from zlog._trim.retention import Retention, RetentionReport, enforce, report, set_retention
from zlog.aio.check import Check
from zlog.aio.cursor import Cursor
from zlog.aio.opening import Opening
from zlog.aio.stream import Stream
from zlog.aio.writer import Writer, open_writer
from zlog.entry import Entry, Gap
from zlog.limits import (
    ENTRY_BYTES_MAX_DEFAULT,
    HOLE_TIMEOUT_SECONDS,
    SEQUENCER_TIMEOUT_SECONDS,
    TIMEOUT_SECONDS,
    WIDTH_DEFAULT,
)
from zlog.store import Store
from zlog.view import Stripe, View

if TYPE_CHECKING:
    from typing_extensions import Self

    from zlog._native.core import NewEntry


class Log(LogHandle):
    """A handle on one log, for one event loop. See :class:`zlog.Log` for what each call does."""

    _kind = "zlog.aio.Log"

    def __init__(self, client: LogClient) -> None:
        """Wrap a client; programs call :meth:`open` or :meth:`create`."""
        super().__init__(client)
        self._coalescer = Coalescer(client.appender, client.io, client.settings.timeout)
        self._append = self._coalescer.append

    @classmethod
    def create(
        cls,
        store: Store,
        name: str,
        *,
        width: int = WIDTH_DEFAULT,
        unit: int | None = None,
        stripe_bytes: int | None = None,
        stripe_records: int | None = None,
        compression: str | None = None,
        options: Mapping[str, str] | None = None,
        timeout: float | None = TIMEOUT_SECONDS,
        hole_timeout: float | None = HOLE_TIMEOUT_SECONDS,
        sequencer_timeout: float = SEQUENCER_TIMEOUT_SECONDS,
        entry_bytes_max: int = ENTRY_BYTES_MAX_DEFAULT,
        mac_key: MacKeySource | None = None,
    ) -> Opening[Self]:
        """Make a log and open it; see :meth:`zlog.Log.create`, and :meth:`open` how to wait."""
        key = key_of(mac_key)
        settings = Settings(timeout, hole_timeout, sequencer_timeout, entry_bytes_max, key)
        new = NewLog.of(width, unit, stripe_bytes, stripe_records, compression, options)
        opened = cls._open(store, name, lambda io: LogClient.create(io, name, new, settings))
        return Opening(opened, cls.close)

    @classmethod
    def open(
        cls,
        store: Store,
        name: str,
        *,
        create: bool = False,
        width: int | None = None,
        unit: int | None = None,
        stripe_bytes: int | None = None,
        stripe_records: int | None = None,
        compression: str | None = None,
        options: Mapping[str, str] | None = None,
        timeout: float | None = TIMEOUT_SECONDS,
        hole_timeout: float | None = HOLE_TIMEOUT_SECONDS,
        sequencer_timeout: float = SEQUENCER_TIMEOUT_SECONDS,
        entry_bytes_max: int = ENTRY_BYTES_MAX_DEFAULT,
        mac_key: MacKeySource | None = None,
    ) -> Opening[Self]:
        """Open a log; see :meth:`zlog.Log.open`.

        Await it, and close the log in the end; or enter it with ``async with``, which does that.
        """
        key = key_of(mac_key)
        settings = Settings(timeout, hole_timeout, sequencer_timeout, entry_bytes_max, key)
        new = new_log(create, width, unit, stripe_bytes, stripe_records, compression, options)
        opened = cls._open(store, name, lambda io: LogClient.open(io, name, settings, new))
        return Opening(opened, cls.close)

    @classmethod
    async def _open(
        cls, store: Store, name: str, begin: Callable[[Io], Awaitable[LogClient]]
    ) -> Self:
        io = AsyncioIo(store, f"the log {name!r}")
        try:
            return cls(await begin(io))
        except BaseException:
            await io.close()
            raise

    @staticmethod
    async def list(
        store: Store,
        *,
        after: str = "",
        count: int | None = None,
        timeout: float | None = TIMEOUT_SECONDS,
    ) -> builtins.list[str]:
        """Return the names of the store's logs, in order; see :meth:`zlog.Log.list`."""
        io = AsyncioIo(store)
        try:
            return await list_logs(io, deadline_of(io, timeout), after=after, count=count)
        finally:
            await io.close()

    @staticmethod
    async def remove(store: Store, name: str, *, timeout: float | None = TIMEOUT_SECONDS) -> None:
        """Remove a log with all its entries; see :meth:`zlog.Log.remove`."""
        io = AsyncioIo(store)
        try:
            await remove_log(io, name, deadline_of(io, timeout))
        finally:
            await io.close()

    def append(
        self, data: bytes, *, tags: Tags = (), timeout: Timeout = ...
    ) -> Coroutine[Any, Any, int]:
        """Append one entry and return its position; see :meth:`zlog.Log.append`.

        Appends that wait at the same time travel together, in the order of the calls, unless they
        come with a ``timeout`` of their own. A quiet log's append leaves at once. When more than
        64 MiB wait to be sent, further appends wait before they are handed in.
        """
        entry = data if tags == () else new_entry(data, tags)
        return self._append(entry) if timeout is ... else self._append_alone(entry, timeout)

    async def _append_alone(self, entry: NewEntry, timeout: float | None) -> int:
        return (await self._client.appender.append([entry], self._deadline(timeout)))[0]

    async def append_many(
        self,
        entries: Iterable[bytes],
        *,
        tags: Tags = (),
        tags_each: Iterable[Tags] | None = None,
        timeout: Timeout = ...,
    ) -> builtins.list[int]:
        """Append entries in one go; see :meth:`zlog.Log.append_many`."""
        items = new_entries(entries, tags, tags_each)
        return await self._client.appender.append(items, self._deadline(timeout))

    async def reserve(self, count: int = 1, *, timeout: Timeout = ...) -> range:
        """Take positions without writing to them yet; see :meth:`zlog.Log.reserve`."""
        return await self._client.reserved.reserve(count, self._deadline(timeout))

    async def write(
        self, position: int, data: bytes, *, tags: Tags = (), timeout: Timeout = ...
    ) -> None:
        """Write an entry at a position that was reserved; see :meth:`zlog.Log.write`."""
        entry = new_entry(data, tags)
        await self._client.reserved.write(position, entry, self._deadline(timeout))

    async def deliver(
        self,
        entries: Iterable[bytes],
        *,
        source: str,
        batch: int,
        part: int = 0,
        tags: Tags = (),
        tags_each: Iterable[Tags] | None = None,
        timeout: Timeout = ...,
    ) -> int:
        """Append entries exactly once; see :meth:`zlog.Log.deliver`."""
        key = DeliveryKey(source, batch, part)
        stream = entry_stream(entries, tags, tags_each)
        return await self._client.deliveries.deliver(stream, key, timeout)

    async def deliveries_done(self, source: str, *, before: int, timeout: Timeout = ...) -> None:
        """Say which batches of a source are delivered; see :meth:`zlog.Log.deliveries_done`."""
        await self._client.deliveries.records.done(source, before, self._deadline(timeout))

    async def forget_source(self, source: str, *, timeout: Timeout = ...) -> None:
        """Forget a source of deliveries that is gone; see :meth:`zlog.Log.forget_source`."""
        await self._client.deliveries.records.forget(source, self._deadline(timeout))

    async def sources(self, *, timeout: Timeout = ...) -> builtins.list[DeliverySource]:
        """Return all sources of deliveries; see :meth:`zlog.Log.sources`."""
        return await self._client.deliveries.records.sources(self._deadline(timeout))

    async def read(self, position: int, *, timeout: Timeout = ...) -> Entry:
        """Read one entry as it is now; see :meth:`zlog.Log.read`."""
        return await self._client.read(position, self._deadline(timeout))

    async def read_range(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        tags: Collection[str] | None = None,
        match: Match = "any",
        reverse: bool = False,
        hole_timeout: Timeout = ...,
    ) -> AsyncIterator[Entry | Gap]:
        """Iterate over ``[start, end)`` in order; see :meth:`zlog.Log.read_range`."""
        reader = self._client.range_reader(start, end, tags, match, reverse, hole_timeout)
        while (items := await reader.next()) is not None:
            for item in items:
                yield item

    async def read_columns(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        indexes: Collection[int] | None = None,
        window_bytes: int | None = None,
        with_tags: bool = False,
        tags: Collection[str] | None = None,
        match: Match = "any",
        hole_timeout: Timeout = ...,
    ) -> AsyncIterator[Columns]:
        """Iterate over ``[start, end)`` as columns; see :meth:`zlog.Log.read_columns`."""
        reader = self._client.columns_reader(
            start, end, indexes, window_bytes, with_tags, tags, match, hole_timeout
        )
        while (windows := await reader.next()) is not None:
            for columns in windows:
                yield columns

    async def follow(
        self,
        start: int = 0,
        *,
        tags: Collection[str] | None = None,
        match: Match = "any",
        hole_timeout: Timeout = ...,
    ) -> AsyncIterator[Entry | Gap]:
        """Iterate from ``start`` on, for ever; see :meth:`zlog.Log.follow`."""
        follower = self._client.follower(start, tags, match, hole_timeout)
        while True:
            for item in await follower.next():
                yield item

    async def fill(self, position: int, *, timeout: Timeout = ...) -> None:
        """Fill an unwritten position; see :meth:`zlog.Log.fill`."""
        await self._client.fill(position, self._deadline(timeout))

    async def trim(self, position: int, *, timeout: Timeout = ...) -> None:
        """Trim one position; see :meth:`zlog.Log.trim`."""
        await self._client.trim(position, self._deadline(timeout))

    async def trim_to(
        self, position: int, *, past_cursors: bool = False, timeout: Timeout = ...
    ) -> None:
        """Trim every position below ``position``; see :meth:`zlog.Log.trim_to`."""
        await self._client.trim_to(position, self._deadline(timeout), past_cursors=past_cursors)

    async def set_retention(self, retention: Retention, *, timeout: Timeout = ...) -> None:
        """Set what is kept of the log from now on; see :meth:`zlog.Log.set_retention`."""
        await set_retention(self._client.layout, retention, self._deadline(timeout))

    async def apply_retention(self, *, timeout: Timeout = ...) -> int:
        """Trim now what need not be kept; see :meth:`zlog.Log.apply_retention`."""
        return await enforce(self._client.reader, self._deadline(timeout))

    async def retention_report(self, *, timeout: Timeout = ...) -> RetentionReport:
        """Return what is known for limits of age; see :meth:`zlog.Log.retention_report`."""
        return await report(self._client.layout, self._deadline(timeout))

    async def reconfigure(
        self,
        *,
        width: int | None = None,
        unit: int | None = None,
        stripe_bytes: int | None = None,
        stripe_records: int | None = None,
        compression: str | None = None,
        options: Mapping[str, str | None] | None = None,
        timeout: Timeout = ...,
    ) -> View:
        """Change the log's width or options while it is used; see the synchronous one."""
        wanted = merged_options(options, stripe_bytes, stripe_records, compression)
        return await reconfigure(self._client.layout, width, unit, wanted, self._deadline(timeout))

    async def roll(self, *, rescue: bool = False, timeout: Timeout = ...) -> View:
        """Start a new stripe of the same width; see :meth:`zlog.Log.roll`."""
        return await roll(self._client.layout, self._deadline(timeout), rescue=rescue)

    def writer(
        self,
        name: str | None = None,
        *,
        window_bytes: int = WINDOW_BYTES,
        capacity: int | None = None,
        when_full: Literal["wait", "raise"] = "wait",
        timeout: Timeout = ...,
    ) -> Opening[Writer]:
        """Make this client the only one that appends; see :meth:`zlog.Log.writer`.

        Await it, and close the writer in the end; or enter it with ``async with``.
        """
        taken = open_writer(self._client, name, Limits(window_bytes, capacity, when_full), timeout)
        return Opening(taken, Writer.close)

    async def fence(self, *, timeout: Timeout = ...) -> View:
        """Take the log from its exclusive writer; see :meth:`zlog.Log.fence`."""
        return await open_to_all(self._client.layout, self._deadline(timeout))

    async def read_only(self, *, timeout: Timeout = ...) -> View:
        """Have the log take no appends; see :meth:`zlog.Log.read_only`."""
        return await set_read_only(self._client.layout, True, self._deadline(timeout))

    async def writable(self, *, timeout: Timeout = ...) -> View:
        """Have the log take appends again; see :meth:`zlog.Log.writable`."""
        return await set_read_only(self._client.layout, False, self._deadline(timeout))

    async def promote(self, *, timeout: Timeout = ...) -> None:
        """Make a mirror a log of its own; see :meth:`zlog.Log.promote`."""
        await promote(self._client.reader, self._deadline(timeout))

    def stream(self, tag: str) -> Stream:
        """Return the entries that have a tag as a log of its own; see :meth:`zlog.Log.stream`."""
        return Stream(self, *tags_checked((tag,)))

    async def last(self, *tags: str, match: Match = "any", timeout: Timeout = ...) -> Entry | None:
        """Return the newest entry with some tags; see :meth:`zlog.Log.last`."""
        return await self._client.last(tags, match, timeout)

    async def tail(self, *, checked: bool = True, timeout: Timeout = ...) -> int:
        """Return the next position that will be handed out; see :meth:`zlog.Log.tail`."""
        return await self._client.positions.tail(self._deadline(timeout), checked=checked)

    async def earliest(self, *, timeout: Timeout = ...) -> int:
        """Return the first position that is not trimmed; see :meth:`zlog.Log.earliest`."""
        return await self._client.positions.resolve("earliest", self._deadline(timeout))

    async def find_time(self, when: datetime | float, *, timeout: Timeout = ...) -> int:
        """Return the first position that is not older; see :meth:`zlog.Log.find_time`."""
        return await self._client.find_time(when, self._deadline(timeout))

    async def cursor(
        self, name: str, *, create: PositionSpec | None = None, timeout: Timeout = ...
    ) -> Cursor:
        """Open a cursor; see :meth:`zlog.Log.cursor`."""
        cursor = self._client.cursor(name)
        await cursor.open(create, timeout)
        return Cursor(cursor)

    async def cursors(self, *, timeout: Timeout = ...) -> builtins.list[CursorState]:
        """Return all cursors of the log, in the order of their names."""
        return await self._client.cursors.list(self._deadline(timeout))

    async def stripes(
        self, start: int = 0, end: int | None = None, *, timeout: Timeout = ...
    ) -> builtins.list[Stripe]:
        """Return all stripes of a range of positions; see :meth:`zlog.Log.stripes`."""
        return await self._client.stripes(start, end, self._deadline(timeout))

    async def stat(
        self, start: int = 0, end: int | None = None, *, timeout: Timeout = ...
    ) -> LogStat:
        """Return the log at a glance; see :meth:`zlog.Log.stat`."""
        return await stat(self._client.positions, start, end, self._deadline(timeout))

    async def position_map(
        self, start: int = 0, end: int | None = None, *, cells: int = 512, timeout: Timeout = ...
    ) -> PositionMap:
        """Return what the positions of a range hold; see :meth:`zlog.Log.position_map`."""
        return await map_of(self._client.positions, start, end, cells, self._deadline(timeout))

    async def views(self, *, timeout: Timeout = ...) -> builtins.list[View]:
        """Return every layout that the log had, oldest first."""
        return await self._client.layout.head.views(self._deadline(timeout))

    def check(
        self,
        *,
        orphans: bool = True,
        heal: bool = False,
        copies: int = 0,
        rebuild_index: bool = False,
        progress: Progress | None = None,
    ) -> Check:
        """Audit the log while it is used; see :meth:`zlog.Log.check`."""
        checker = self._client.check(
            orphans=orphans,
            heal=heal,
            copies=copies,
            rebuild_index=rebuild_index,
            progress=progress,
        )
        return Check(checker)

    async def close(self) -> None:
        """Wait for appends under way and close what this handle opened. Safe to call twice."""
        await self._coalescer.drain()
        await self._client.io.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
