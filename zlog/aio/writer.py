"""The exclusive writer of a log: what :meth:`zlog.aio.Log.writer` returns."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from zlog._append.exclusive_aio import AsyncioAppends
from zlog._append.place import open_to_all, take
from zlog._append.room import Limits, Room
from zlog._base.deadline import Timeout
from zlog._base.process import ProcessBound
from zlog._client import LogClient, Recovery, Tags, new_entries, new_entry
from zlog._io.aio import drive, iterate
from zlog.entry import Entry, Gap
from zlog.errors import Fenced, ZlogError

if TYPE_CHECKING:
    from typing_extensions import Self


WINDOW_BYTES = 64 << 20
"""Data that may be handed in and not confirmed, unless a writer is told otherwise."""


class Writer(ProcessBound):
    """The only client that appends to a log, made by :meth:`zlog.aio.Log.writer`.

    It belongs to one event loop.

    Entries are in the log in the order in which they were handed in, always, and an entry is
    confirmed once all before it are durable. Readers see it from then on at the latest.

    The log stays this writer's, also when the program ends or dies, until another writer takes it,
    or :meth:`release` gives it back. From then on every call that writes raises Fenced.

    After any other error of an append, what was handed in and not confirmed has failed: it may be
    in the log or not, from the front on, and in its order. The writer can go on. Where the futures
    of :meth:`submit` have failed, the next call raises that first, whatever it is: so no entry
    comes behind one that is missing without its sender's knowing.
    """

    _harmless = frozenset()  # closing one says that what was handed in is confirmed, or has failed

    def __init__(self, client: LogClient, appends: AsyncioAppends, room: Room) -> None:
        """Wrap its parts; programs call ``writer`` of a log."""
        self._client = client
        self._deadline = client.deadline
        self._appends = appends
        self._room = room
        self.start = appends.confirmed
        """Where the log's entries ended when this writer took it: the first position it wrote."""

    @property
    def id(self) -> str:
        """The id, 32 hex digits, that this writer's appends carry, and no other's."""
        return self._appends.writer.id

    @property
    def name(self) -> str:
        """What it calls itself, for those that find the log taken."""
        return self._appends.writer.name

    @property
    def confirmed(self) -> int:
        """Where the confirmed entries end: readers see all below this position."""
        return self._appends.confirmed

    @property
    def unconfirmed_bytes(self) -> int:
        """Bytes of data that were handed in and are not confirmed yet."""
        return self._appends.unconfirmed_bytes

    @property
    def held_bytes(self) -> int | None:
        """Bytes of data that the log holds, as far as this writer knows; None: no capacity set."""
        return None if self._room.capacity is None else self._room.held

    @property
    def fenced(self) -> Fenced | None:
        """Why this writer is not the log's any more, as far as it has noticed; None: it is."""
        return self._appends.fenced

    def append(
        self, data: bytes, *, tags: Tags = (), timeout: Timeout = ...
    ) -> Coroutine[Any, Any, int]:
        """Append one entry and return its position, once it is confirmed.

        Where nothing else is under way, this is one operation of the store.

        Args:
            data: the entry.
            tags: as :meth:`zlog.aio.Log.append` takes them.
            timeout: seconds to wait; the entry, once it was handed in, goes on its way after that.

        Raises:
            Fenced: the log is not this writer's any more.
            EntryTooLarge, InvalidTag: nothing was sent.
            LimitReached: the log is at the writer's capacity, which is not to wait.
            StoreTimeout: the entry may be in the log or not.
        """
        entry = data if tags == () else new_entry(data, tags)
        if timeout is ... and self._room.capacity is None:
            return self._appends.append(entry)
        deadline = self._deadline(timeout)
        own = timeout is not ...
        position: Coroutine[Any, Any, int] = self._appends.append_all((entry,), deadline, own=own)
        return position

    async def append_many(
        self,
        entries: Iterable[bytes],
        *,
        tags: Tags = (),
        tags_each: Iterable[Tags] | None = None,
        timeout: Timeout = ...,
    ) -> range:
        """Append entries and return their positions, which follow each other, once confirmed.

        Args:
            entries, tags, tags_each: as :meth:`zlog.aio.Log.append_many` takes them.
            timeout: see :meth:`append`.

        Raises:
            Fenced, EntryTooLarge, InvalidTag, LimitReached, StoreTimeout: see :meth:`append`. Of
                entries that may be in the log, those come first that were first in the list.
        """
        items = new_entries(entries, tags, tags_each)
        if not items:
            return range(0)
        own, deadline = timeout is not ..., self._deadline(timeout)
        positions: range = await self._appends.append_all(items, deadline, own=own, many=True)
        return positions

    async def submit(
        self, data: bytes, *, tags: Tags = (), timeout: Timeout = ...
    ) -> asyncio.Future[int]:
        """Hand an entry in, and return the future of its position.

        Futures are resolved in the order of the calls. What waits to be sent leaves together, the
        more the slower the store is. Where too much is under way the call waits for room.

        Args:
            data: the entry.
            tags: as :meth:`zlog.aio.Log.append` takes them.
            timeout: seconds to wait for room.

        Raises:
            Fenced, EntryTooLarge, InvalidTag, LimitReached: see :meth:`append`.
            StoreTimeout: there was no room in time. The entry was not sent.
        """
        return await self._appends.submit((new_entry(data, tags),), self._deadline(timeout))

    async def submit_many(
        self,
        entries: Iterable[bytes],
        *,
        tags: Tags = (),
        tags_each: Iterable[Tags] | None = None,
        timeout: Timeout = ...,
    ) -> asyncio.Future[range]:
        """Hand entries in, and return the future of their positions, which follow each other.

        As :meth:`submit`, and quicker for each of them. They are confirmed together.

        Args:
            entries, tags, tags_each: as :meth:`zlog.aio.Log.append_many` takes them.
            timeout: seconds to wait for room.

        Raises:
            Fenced, EntryTooLarge, InvalidTag, LimitReached, StoreTimeout: see :meth:`submit`. None
                of them was sent.
        """
        items = new_entries(entries, tags, tags_each)
        return await self._appends.submit(items, self._deadline(timeout), many=True)

    async def flush(self, *, timeout: Timeout = ...) -> None:
        """Wait until all that was handed in is confirmed, or has failed.

        Raises:
            StoreTimeout: it took too long.
            ZlogError: entries have failed, and no call has raised that yet.
        """
        await self._appends.flush(self._deadline(timeout))

    def recover(self) -> AsyncIterator[Entry | Gap]:
        """Iterate over what the log held when this writer took it, from the trim point on.

        In large reads, of which some are under way while the caller works. Gaps are only found
        where the log was not exclusive.
        """
        return iterate(Recovery(self._client, self.start))

    async def trim(self, position: int, *, timeout: Timeout = ...) -> None:
        """Trim every position below ``position``; see :meth:`zlog.aio.Log.trim_to`.

        Raises:
            BeyondTail: the log is not confirmed so far.
            HeldByCursor: a reader with a cursor has not come so far.
        """
        deadline = self._deadline(timeout)
        await drive(self._client.trim_to(position, deadline, past_cursors=False))
        await drive(self._room.count(deadline))
        self._appends.freed()

    async def reset(self, *, timeout: Timeout = ...) -> int:
        """Trim all that is confirmed, and return where the log begins then."""
        position = self.confirmed
        await self.trim(position, timeout=timeout)
        return position

    async def release(self, *, timeout: Timeout = ...) -> None:
        """Wait for what is under way, and give the log back: any client may append again.

        A log that is not this writer's any more is left alone. Safe to repeat.
        """
        await self.flush(timeout=timeout)
        writer, deadline = self._appends.writer, self._deadline(timeout)
        await drive(open_to_all(self._client.layout, deadline, writer=writer))

    async def close(self) -> None:
        """Wait for what is under way. The log stays this writer's; see :meth:`release`."""
        await self._appends.close(self._deadline())

    def __repr__(self) -> str:
        return f"<zlog.aio.Writer {self.name!r} of {self._client.layout}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What the block has raised tells more than what became of the rest.
        with contextlib.suppress(*(() if error is None else (ZlogError,))):
            await self.close()


async def open_writer(
    client: LogClient,
    name: str | None,
    limits: Limits,
    timeout: Timeout,
) -> Writer:
    """Take the log; see :meth:`zlog.aio.Log.writer`."""
    deadline = client.deadline(timeout)
    writer, view, end = await drive(take(client.layout, name, deadline))
    appends = AsyncioAppends(client.layout, writer, view, end, client.options.timeout)
    room = Room(appends, limits)
    appends.prepare(client.appender, room)
    await drive(room.count(deadline))
    return Writer(client, appends, room)
