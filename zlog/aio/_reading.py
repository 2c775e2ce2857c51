"""The methods of a log that read it, report on its parts, or return positions for readers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from datetime import datetime
from typing import NoReturn

from zlog._audit.position_map import PositionMap, map_of
from zlog._base.deadline import Timeout
from zlog._base.process import ProcessBound
from zlog._base.wanted import Match, Wanted
from zlog._client import LogClient
from zlog._io.aio import drive, iterate
from zlog._positions.positions import PositionSpec
from zlog._positions.stat import LogStat, stat
from zlog._read.columns import Columns, column_reader
from zlog._read.cursors import CursorState, check_spec, put_at
from zlog._read.iterate import Follower, RangeReader, ReadOptions, range_reader
from zlog._read.read import Reader
from zlog._read.select import BackwardReader, last_entry
from zlog._trim.retention import Retention
from zlog.aio.cursor import Cursor
from zlog.entry import Entry, Gap
from zlog.store import Store
from zlog.view import Stripe, StripeFile, View


class Reading(ProcessBound):
    """The attributes of a log that need no request, and the methods that read."""

    def __init__(self, client: LogClient) -> None:
        """Wrap a client; programs call :meth:`open` or :meth:`create`."""
        self._client = client
        self._deadline = client.deadline

    @property
    def name(self) -> str:
        """The log's name."""
        return self._client.layout.view.log

    @property
    def store(self) -> Store:
        """The store that holds the log."""
        return self._client.io.store

    @property
    def writer_id(self) -> str:
        """The id of this handle's appends and fills, 32 hex digits. No other handle has this id."""
        return self._client.writer.hex()

    @property
    def view(self) -> View:
        """The newest layout that this handle has seen."""
        return self._client.layout.view

    @property
    def replica_reads(self) -> Mapping[str, int]:
        """How many reads other replicas have answered for a damaged primary replica, by object.

        Such reads take longer. Call :meth:`check` with ``repair`` to repair the damage.
        """
        return dict(self._client.io.replica_reads)

    @property
    def retention(self) -> Retention:
        """The log's retention in this handle's newest :attr:`view`."""
        return Retention.of(self.view.options)

    @property
    def hole_timeout(self) -> float | None:
        """How many seconds this handle waits before it fills a hole; None means it never does."""
        return self._client.budget.hole_timeout(...)

    @property
    def entry_bytes_max(self) -> int:
        """The maximum size of an entry that this handle appends, in bytes."""
        return self._client.limit.bytes_max

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a log can't be pickled or copied: open {self.name!r} in the other process"
        )

    async def read(self, position: int, *, timeout: Timeout = ...) -> Entry:
        """Read one entry as it is now, without waiting for it.

        Raises:
            NotWritten: the position was not written yet.
            Invalidated: the position was filled or trimmed.
            CorruptEntry: the entry's bytes are damaged, or its object is missing.
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
        """Iterate over ``[start, end)`` in order, at most up to the tail as of the first read.

        Every position is reported, either as an Entry or in a Gap. If ``tags`` is given, a gap is
        reported only if it may hide a matching entry: it is trimmed, lost or unreadable or, in a
        read-only store, unwritten.

        Args:
            start: the first position.
            end: one past the last position. None, or a position above the tail, means the tail.
            tags: return only entries with these tags; None means all entries.
            match: whether an entry needs ``"any"`` or ``"all"`` of the tags.
            hole_timeout: see :meth:`open`; by default the handle's own.
        """
        options = ReadOptions(tags, match, hole_timeout)
        reader = self._client.reader
        if reverse:
            return iterate(BackwardReader(reader, options.wanted, start, end, hole_timeout))
        return iterate(range_reader(reader, start, end, options))

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
        """Iterate over ``[start, end)`` as :meth:`read_range` does, one window at a time.

        Use this to fill tables, because it creates no Python object per entry. The positions of a
        window are in one stripe.

        Args:
            start: the first position.
            end: one past the last position. None, or a position above the tail, means the tail.
            indexes: the stripe objects to read, numbered from 0 in their stripe; None means all.
            window_bytes: the target size of a window's data, by default 8 MiB. Large entries may
                exceed it. Three windows are in memory at a time.
            with_data: whether to read the entries' data. Without it ``data`` is empty, all
                ``offsets`` are 0, and damaged or forged entries are not detected.
            with_tags: whether to return the tags. This makes a Python object per entry.
            tags, match: return only entries with these tags, as in :meth:`read_range`. This makes a
                Python object per entry.
            hole_timeout: see :meth:`open`; by default the handle's own.

        Raises:
            ValueError: a position or an index is negative, or ``window_bytes`` is too small.
        """
        options = ReadOptions(
            tags,
            match,
            hole_timeout,
            indexes=indexes,
            window_bytes=window_bytes,
            with_tags=with_tags,
        )
        client = self._client
        reader = client.reader
        if not with_data:
            reader = Reader(client.positions, client.writer, client.budget, with_data=False)
        return iterate(RangeReader(reader, column_reader(reader, start, options), end))

    def follow(
        self,
        start: int = 0,
        *,
        tags: Collection[str] | None = None,
        match: Match = "any",
        hole_timeout: Timeout = ...,
    ) -> AsyncIterator[Entry | Gap]:
        """Iterate from ``start`` on without end, and wait at the tail for new entries.

        If the log has a sequencer, it announces new entries. Otherwise the tail is polled at least
        four times a second. If a trim overtakes the reader, it gets a Gap and continues.

        Args:
            start: the first position, which may be above the tail.
            tags, match: return only entries with these tags, as in :meth:`read_range`.
            hole_timeout: see :meth:`open`; by default the handle's own. With None, the reader waits
                at a hole until another client writes or fills it.
        """
        options = ReadOptions(tags, match, hole_timeout)
        return iterate(Follower(self._client.reader, start, options))

    async def last(
        self,
        *tags: str,
        match: Match = "any",
        before: int | None = None,
        timeout: Timeout = ...,
    ) -> Entry | None:
        """Return the newest entry that has these tags, or None if there is none.

        Args:
            tags: the tags. Without tags, the newest entry of the log is returned.
            match: whether an entry needs ``"any"`` or ``"all"`` of the tags.
            before: return the newest entry below this position; None means the tail.
            timeout: the budget of the call. Finding a rare tag may take requests to many stripes.
        """
        wanted = Wanted.of(tags, match) if tags else None
        return await drive(last_entry(self._client.reader, wanted, before, timeout))

    async def tail(self, *, checked: bool = True, timeout: Timeout = ...) -> int:
        """Return the next position that will be granted.

        A reader that starts there gets only later entries.

        Args:
            checked: whether the answer must be linearizable. It is then above every entry that was
                acknowledged before the call, and never below an earlier checked answer to any
                client. This takes one more operation. An unchecked answer may be too high or too
                low right after the sequencer was replaced.
        """
        return await drive(self._client.positions.tail(self._deadline(timeout), checked=checked))

    async def earliest(self, *, timeout: Timeout = ...) -> int:
        """Return the oldest position that is not trimmed, or the tail if all positions are trimmed.

        A reader that starts there gets all entries. The position itself may have been filled.
        """
        return await drive(self._client.positions.resolve("earliest", self._deadline(timeout)))

    async def find_time(self, when: datetime | float, *, timeout: Timeout = ...) -> int:
        """Return the first position whose entry is not older than ``when``, or else the tail.

        This is a binary search, which takes about twenty small reads in a log of a million entries.

        The time of an entry comes from its writer's clock. The answer is exact if times never
        decrease along the log, and is as accurate as the writers' clocks otherwise.

        Args:
            when: a datetime with a time zone, or seconds since 1970.

        Raises:
            ValueError: ``when`` is a datetime without a time zone.
        """
        return await drive(self._client.find_time(when, self._deadline(timeout)))

    async def cursor(
        self, name: str, *, create: PositionSpec | None = None, timeout: Timeout = ...
    ) -> Cursor:
        """Open a cursor, which stores a reader's position so that the reader can restart anywhere.

        Args:
            name: 1 to 128 letters, digits, ``_``, ``.`` or ``-``.
            create: the position at which a new cursor starts: a number, ``"earliest"`` or
                ``"latest"``. None means that the cursor must exist.

        Raises:
            CursorNotFound: the cursor does not exist, and ``create`` is not given.
            Invalidated: ``create`` is below the trim point.
            BeyondTail: ``create`` is above the tail.
        """
        client, deadline = self._client, self._deadline(timeout)
        cursors = client.cursors
        check_spec(create)
        state = await drive(cursors.read(name, deadline))
        if state is not None:
            return Cursor(client, name, state.position)
        if create is None:
            raise cursors.missing(name)
        position = await drive(put_at(client.positions, cursors.create, name, create, deadline))
        return Cursor(client, name, position)

    async def cursors(self, *, timeout: Timeout = ...) -> list[CursorState]:
        """Return all cursors of the log, in the order of their names."""
        return await drive(self._client.cursors.list(self._deadline(timeout)))

    async def stripes(
        self, start: int = 0, end: int | None = None, *, timeout: Timeout = ...
    ) -> list[Stripe]:
        """Return all stripes that hold positions of ``[start, end)``, in ascending order.

        The result includes archived stripes, which a :attr:`view` lacks, but not stripes that are
        completely trimmed. The call takes one request to the head object, and one more for every
        1,024 archived stripes that this handle has not looked up yet.

        Args:
            start: the first position.
            end: one past the last position; None includes the open stripe.

        Raises:
            CorruptEntry: the head has lost a stripe.
        """
        return await drive(self._client.stripes(start, end, self._deadline(timeout)))

    async def stripe_files(
        self, start: int = 0, end: int | None = None, *, timeout: Timeout = ...
    ) -> list[StripeFile]:
        """Return the files of all offloaded stripes that hold positions of ``[start, end)``.

        The list is in ascending order, and omits stripes that are completely trimmed. The call does
        not open the files. It takes one request to the head object for every 128 files.

        Args:
            start: the first position.
            end: one past the last position; None means no limit.
        """
        return await drive(self._client.stripe_files(start, end, self._deadline(timeout)))

    async def stat(
        self, start: int = 0, end: int | None = None, *, timeout: Timeout = ...
    ) -> LogStat:
        """Return statistics of the log, with one request per stripe object.

        Args:
            start, end: count only the stripes that have positions in ``[start, end)``. Each of them
                is counted completely. An ``end`` of None means no limit.
        """
        return await drive(stat(self._client.positions, start, end, self._deadline(timeout)))

    async def position_map(
        self, start: int = 0, end: int | None = None, *, cells: int = 512, timeout: Timeout = ...
    ) -> PositionMap:
        """Return a summary of the positions of ``[start, end)``, in cells of equal length.

        Each object checks at most 256 positions per cell and sends no entries, so the cost does not
        depend on the length of the range. The result is exact if cells are that short.

        Args:
            start: the first position.
            end: one past the last position. None, or a position above the tail, means the tail.
            cells: the maximum number of cells, 1 to 4,096.
        """
        return await drive(
            map_of(self._client.positions, start, end, cells, self._deadline(timeout))
        )

    async def views(self, *, timeout: Timeout = ...) -> list[View]:
        """Return the layouts of the last 128 epochs, oldest first."""
        return await drive(self._client.layout.head.views(self._deadline(timeout)))
