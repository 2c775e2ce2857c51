"""The exclusive writer of a log, as :meth:`zlog.aio.Log.writer` returns it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from zlog._append.exclusive_forms import AsyncioAppends
from zlog._append.ownership import open_to_all, take
from zlog._append.quota import WriterLimits
from zlog._base.deadline import Timeout
from zlog._base.process import ProcessBound
from zlog._client import LogClient, Tags, new_entries
from zlog._io.aio import drive, iterate
from zlog._native.new_entries import with_tags
from zlog._read.iterate import range_reader
from zlog.entry import Entry, Gap
from zlog.errors import Fenced, ZlogError

if TYPE_CHECKING:
    from typing_extensions import Self


WINDOW_BYTES = 64 << 20
"""The default limit of submitted data that is not confirmed."""


class Writer(ProcessBound):
    """The only client that appends to a log. Create it with :meth:`zlog.aio.Log.writer`.

    It belongs to one event loop.

    Entries get their positions in the order in which they are submitted. An entry is confirmed, and
    visible to readers, once it and all earlier entries are durable.

    The log belongs to this writer, even after the program ends or dies, until another writer takes
    the log or you call :meth:`release`. After that, every call that writes raises Fenced.

    If an append fails with another error, all unconfirmed entries fail, although a prefix of them
    may be in the log. If a future of :meth:`submit` has failed, the next call of any kind raises
    its error before it does anything, so that no entry follows a missing one unnoticed. After that,
    the writer can continue.
    """

    _harmless = frozenset()  # after a close, all entries are confirmed or have failed

    def __init__(self, client: LogClient, appends: AsyncioAppends) -> None:
        """Wrap the parts of a writer. Programs call the method ``writer`` of a log instead."""
        self._client = client
        self._deadline = client.deadline
        self._appends = appends
        self._quota = appends.quota
        self.start = appends.confirmed
        """This writer's first position, which is where the log ended when the writer took it."""

    @property
    def id(self) -> str:
        """The id of this writer's appends, 32 hex digits. No other writer has this id."""
        return self._appends.writer.id

    @property
    def name(self) -> str:
        """The writer's name, which clients see when their appends are refused."""
        return self._appends.writer.name

    @property
    def confirmed(self) -> int:
        """One past the last confirmed position. Readers see all entries below it."""
        return self._appends.confirmed

    @property
    def unconfirmed_bytes(self) -> int:
        """How many bytes of submitted data are not confirmed yet."""
        return self._quota.unconfirmed_bytes

    @property
    def held_bytes(self) -> int | None:
        """The bytes of data in the log, as far as this writer knows. None without a capacity."""
        return None if self._quota.capacity is None else self._quota.held

    @property
    def fenced(self) -> Fenced | None:
        """The error that this writer got when it lost the log, or None if it knows of no loss."""
        return self._appends.fenced

    def append(
        self, data: bytes, *, tags: Tags = (), timeout: Timeout = ...
    ) -> Coroutine[Any, Any, int]:
        """Append one entry and return its position, once it is confirmed.

        If nothing else is in flight, this takes one operation in the store.

        Args:
            data: the entry.
            tags: see :meth:`zlog.aio.Log.append`.
            timeout: how many seconds to wait. A submitted entry is still appended after that.

        Raises:
            Fenced: this writer has lost the log.
            EntryTooLarge, InvalidTag: nothing was sent.
            LimitReached: the log is full, and the writer was opened with ``when_full="raise"``.
            StoreTimeout: the entry may or may not be in the log.
        """
        entry = data if tags == () else with_tags(data, tags)
        if timeout is ... and self._quota.capacity is None:
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
        """Append entries, and return their consecutive positions once they are confirmed.

        Args:
            entries, tags, tags_each: see :meth:`zlog.aio.Log.append_many`.
            timeout: see :meth:`append`.

        Raises:
            Fenced, EntryTooLarge, InvalidTag, LimitReached, StoreTimeout: see :meth:`append`. After
                a timeout, a prefix of the entries may be in the log.
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
        """Submit an entry, and return a future of its position.

        Futures are resolved in the order of the calls. Waiting entries are sent together. If the
        writer's window is full, the call waits for space.

        Args:
            data: the entry.
            tags: see :meth:`zlog.aio.Log.append`.
            timeout: how many seconds to wait for space in the window.

        Raises:
            Fenced, EntryTooLarge, InvalidTag, LimitReached: see :meth:`append`.
            StoreTimeout: the window stayed full. The entry was not sent.
        """
        return await self._appends.submit((with_tags(data, tags),), self._deadline(timeout))

    async def submit_many(
        self,
        entries: Iterable[bytes],
        *,
        tags: Tags = (),
        tags_each: Iterable[Tags] | None = None,
        timeout: Timeout = ...,
    ) -> asyncio.Future[range]:
        """Submit entries, and return a future of their consecutive positions.

        This works like :meth:`submit`, but is faster. The entries are confirmed together.

        Args:
            entries, tags, tags_each: see :meth:`zlog.aio.Log.append_many`.
            timeout: how many seconds to wait for space in the window.

        Raises:
            Fenced, EntryTooLarge, InvalidTag, LimitReached, StoreTimeout: see :meth:`submit`. No
                entry was sent.
        """
        items = new_entries(entries, tags, tags_each)
        return await self._appends.submit(items, self._deadline(timeout), many=True)

    async def flush(self, *, timeout: Timeout = ...) -> None:
        """Wait until all submitted entries are confirmed or have failed.

        Raises:
            StoreTimeout: the time was up before all entries were confirmed or had failed.
            ZlogError: entries have failed, and no call has raised their error yet.
        """
        await self._appends.flush(self._deadline(timeout))

    def recover(self) -> AsyncIterator[Entry | Gap]:
        """Iterate over the entries that the log held when this writer took it.

        Gaps can occur only if the log was not always exclusive.
        """
        return iterate(range_reader(self._client.reader, 0, self.start, untrimmed=True))

    async def trim(self, position: int, *, timeout: Timeout = ...) -> None:
        """Trim every position below ``position``; see :meth:`zlog.aio.Log.trim_to`.

        Raises:
            BeyondTail: some positions are not confirmed.
            HeldByCursor: a reader with a cursor has not read some positions.
        """
        deadline = self._deadline(timeout)
        await drive(self._client.trim_to(position, deadline, past_cursors=False))
        await drive(self._quota.count(deadline))
        self._appends.freed()

    async def reset(self, *, timeout: Timeout = ...) -> int:
        """Trim all confirmed entries, and return the position at which the log now starts."""
        position = self.confirmed
        await self.trim(position, timeout=timeout)
        return position

    async def release(self, *, timeout: Timeout = ...) -> None:
        """Wait for entries in flight, and then release the log, so that any client can append.

        This does nothing if the writer has lost the log. It is safe to repeat this.
        """
        await self.flush(timeout=timeout)
        writer, deadline = self._appends.writer, self._deadline(timeout)
        await drive(open_to_all(self._client.layout, deadline, writer=writer))

    async def close(self) -> None:
        """Wait for entries in flight. The log still belongs to this writer; see :meth:`release`."""
        await self._appends.close(self._deadline())

    def __repr__(self) -> str:
        return f"<zlog.aio.Writer {self.name!r} of {self._client.layout}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        with contextlib.suppress(*(() if kind is None else (ZlogError,))):  # keep the block's error
            await self.close()


async def open_writer(
    client: LogClient, name: str | None, limits: WriterLimits, timeout: Timeout
) -> Writer:
    """Take the log; see :meth:`zlog.aio.Log.writer`."""
    deadline = client.deadline(timeout)
    taken = await drive(take(client.layout, name, deadline))
    appends = AsyncioAppends(client.appender, taken, limits, client.options.timeout)
    await drive(appends.quota.count(deadline))
    return Writer(client, appends)
