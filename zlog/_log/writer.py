"""Handles of exclusive writers, of either kind: what they have in common."""

from __future__ import annotations

from zlog._append.exclusive import Exclusive
from zlog._append.place import open_to_all
from zlog._append.room import Room
from zlog._base.deadline import Timeout
from zlog._base.process import ProcessBound
from zlog._client import LogClient
from zlog._read.iterate import Items, RangeReader, range_reader
from zlog.errors import Fenced

WINDOW_BYTES = 64 << 20
"""Data that may be handed in and not confirmed, unless a writer is told otherwise."""


class Recovery:
    """Reads a log as it was when a writer took it, from the trim point on.

    Args:
        client: of the log.
        end: where its entries ended.
    """

    def __init__(self, client: LogClient, end: int) -> None:
        self._client = client
        self._end = end
        self._reader: RangeReader[Items] | None = None

    async def next(self) -> Items | None:
        """Return the next items, in order; None at the end."""
        if self._reader is None:
            client, end = self._client, self._end
            start = await client.positions.resolve("earliest", client.deadline())
            self._reader = range_reader(client.reader, client.budget, min(start, end), end)
        return await self._reader.next()


class WriterHandle(ProcessBound):
    """What handles of exclusive writers have in common."""

    harmless = frozenset()  # closing one says that what was handed in is confirmed, or has failed

    def __init__(self, client: LogClient, appends: Exclusive, room: Room) -> None:
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

    async def _trim(self, position: int, timeout: Timeout) -> None:
        deadline = self._deadline(timeout)
        await self._client.trim_to(position, deadline, past_cursors=False)
        await self._room.count(deadline)
        self._appends.freed()

    async def _give_back(self, timeout: Timeout) -> None:
        writer, deadline = self._appends.writer, self._deadline(timeout)
        await open_to_all(self._client.layout, deadline, writer=writer)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__module__.removesuffix('.writer')}.Writer {self.name!r} of"
            f" {self._client.layout}>"
        )
