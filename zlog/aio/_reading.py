"""The calls of a log that read it, and that find where readers begin."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from datetime import datetime

from zlog._base.deadline import Timeout
from zlog._io.aio import drive, iterate
from zlog._positions.positions import PositionSpec
from zlog._read.columns import Columns
from zlog._read.cursors import CursorState
from zlog._read.options import ReadOptions
from zlog._read.select import Match
from zlog.aio._handle import LogHandle
from zlog.aio.cursor import Cursor
from zlog.entry import Entry, Gap


class Reading(LogHandle):
    """Reads, follows, and keeps cursors."""

    async def read(self, position: int, *, timeout: Timeout = ...) -> Entry:
        """Read one entry as it is now, without waiting for it.

        Raises:
            NotWritten: nothing there yet.
            Invalidated: filled or trimmed.
            CorruptEntry: its bytes are damaged or its object is missing.
        """
        return await drive(self._client.read(position, self._deadline(timeout)))

    def read_range(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        tags: Collection[str] | None = None,
        match: Match = "any",
        reverse: bool = False,
        hole_timeout: Timeout = ...,
    ) -> AsyncIterator[Entry | Gap]:
        """Iterate over ``[start, end)`` in order, as far as the tail when the first is read.

        Every position is accounted for: as an Entry, or inside a Gap. With ``tags`` come the
        entries that have them, and the gaps that may hide one: those that are trimmed up to the
        trim point, lost, unreadable, or, where nothing can be written, unwritten.

        Args:
            start: the first position.
            end: one past the last; None or beyond the tail: up to the tail.
            tags: only entries with these tags; None: all entries.
            match: ``"any"`` of the tags suffices, or an entry has to have ``"all"``.
            reverse: from the end to the start; what is appended meanwhile does not come.
            hole_timeout: as in :meth:`open`; if not given, the handle's own.
        """
        options = ReadOptions(tags, match, hole_timeout, reverse)
        return iterate(self._client.range_reader(start, end, options))

    def read_columns(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        indexes: Collection[int] | None = None,
        window_bytes: int | None = None,
        with_data: bool = True,
        with_tags: bool = False,
        tags: Collection[str] | None = None,
        match: Match = "any",
        hole_timeout: Timeout = ...,
    ) -> AsyncIterator[Columns]:
        """Iterate over ``[start, end)`` as :meth:`read_range` does, a window of entries at a time.

        Made for tables: no Python object per entry. A window has positions of one stripe.

        Args:
            start: the first position.
            end: one past the last; None or beyond the tail: up to the tail.
            indexes: read only the positions of these stripe objects, by their numbers in the
                stripe, from 0; None: all.
            window_bytes: data that a window aims at, 8 MiB unless given; three windows are in
                memory at a time. A window of a few large entries may take more.
            with_data: whether to read the entries' data. Without it the store sends none, ``data``
                is empty and all ``offsets`` are 0; and no entry is checked: one whose bytes are
                damaged or forged counts like the others.
            with_tags: whether ``tags`` has those of each entry, which is an object for each.
            tags, match: only entries with these tags, as in :meth:`read_range`; they are made of
                an object each.
            hole_timeout: as in :meth:`open`; if not given, the handle's own.

        Raises:
            ValueError: a negative position or index, or no room for a window.
        """
        options = ReadOptions(
            tags,
            match,
            hole_timeout,
            indexes=indexes,
            window_bytes=window_bytes,
            with_data=with_data,
            with_tags=with_tags,
        )
        return iterate(self._client.columns_reader(start, end, options))

    def follow(
        self,
        start: int = 0,
        *,
        tags: Collection[str] | None = None,
        match: Match = "any",
        hole_timeout: Timeout = ...,
    ) -> AsyncIterator[Entry | Gap]:
        """Iterate from ``start`` on, for ever: wait at the tail for new entries.

        With a sequencer, new entries are announced; without one the tail is looked up, at least
        four times a second. A reader that trim overtakes gets a Gap and goes on.

        Args:
            start: the first position; it may lie ahead of the tail.
            tags, match: only entries with these tags, as in :meth:`read_range`.
            hole_timeout: as in :meth:`open`; if not given, the handle's own. None makes the reader
                wait at a hole until another client settles it.
        """
        return iterate(self._client.follower(start, ReadOptions(tags, match, hole_timeout)))

    async def last(self, *tags: str, match: Match = "any", timeout: Timeout = ...) -> Entry | None:
        """Return the newest entry that has these tags; without any, the newest entry. None: none.

        Args:
            tags: which.
            match: ``"any"`` of the tags suffices, or an entry has to have ``"all"``.
            timeout: budget of the call; a log in which the tag is rare may have many stripes.
        """
        return await drive(self._client.last(tags, match, timeout))

    async def tail(self, *, checked: bool = True, timeout: Timeout = ...) -> int:
        """Return the next position that will be handed out.

        A reader that begins there gets only what comes from now on.

        Args:
            checked: the answer is linearizable: above everything acknowledged before the call, and
                never below an earlier checked answer to any client. The head records it, which
                costs one operation. Unchecked, it is what the sequencer says, and one that was
                replaced a moment ago may answer once more, too high or too low.
            timeout: budget of the call.
        """
        return await drive(self._client.positions.tail(self._deadline(timeout), checked=checked))

    async def earliest(self, *, timeout: Timeout = ...) -> int:
        """Return the first position that is not trimmed; the tail when all are.

        A reader that begins there misses nothing that is left. The position may hold no entry
        itself, when it was filled or trimmed alone.
        """
        return await drive(self._client.positions.resolve("earliest", self._deadline(timeout)))

    async def find_time(self, when: datetime | float, *, timeout: Timeout = ...) -> int:
        """Return the first position whose entry is not older than ``when``; else the tail.

        A binary search over the entries' times: about twenty small reads in a log of a million.
        Positions without an entry are passed over.

        Entries have the time of their writers' clocks. As long as times don't fall along the log,
        the answer is exact. Where they do, it is one of the places where the log passes ``when``:
        the entry there is not older, and the one before it is. Clocks that agree to within a
        second are exact to within a second.

        Args:
            when: a datetime with a time zone, or seconds since 1970.
            timeout: budget of the call.

        Raises:
            ValueError: a datetime without a time zone.
        """
        return await drive(self._client.find_time(when, self._deadline(timeout)))

    async def cursor(
        self, name: str, *, create: PositionSpec | None = None, timeout: Timeout = ...
    ) -> Cursor:
        """Open a cursor: where a reader goes on that stops and is started again, anywhere.

        Args:
            name: 1 to 128 letters, digits, ``_``, ``.`` or ``-``.
            create: where it begins if there is none of that name: a position, ``"earliest"`` or
                ``"latest"``; None: it has to be there.
            timeout: budget of the call.

        Raises:
            CursorNotFound: there is none, and ``create`` is not given.
            Invalidated: it can't begin below the trim point.
            BeyondTail: nor beyond the tail.
        """
        cursor = self._client.cursor(name)
        await drive(cursor.open(create, timeout))
        return Cursor(cursor)

    async def cursors(self, *, timeout: Timeout = ...) -> list[CursorState]:
        """Return all cursors of the log, in the order of their names."""
        return await drive(self._client.cursors.list(self._deadline(timeout)))
