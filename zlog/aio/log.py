"""The log: what most programs use."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from zlog._append.place import open_to_all, set_read_only
from zlog._append.room import Limits
from zlog._audit.check import Checker, Progress
from zlog._base.deadline import Timeout
from zlog._base.io import deadline_of
from zlog._base.log_options import LogOptions
from zlog._base.mac import MacKeySource, key_of
from zlog._base.settings import HandleOptions
from zlog._client import LogClient
from zlog._io.aio import AsyncioIo, drive
from zlog._layout.reconfigure import reconfigure, roll
from zlog._lifecycle import list_logs, remove_log
from zlog._native.new_entries import tags_checked
from zlog._transfer.promote import promote
from zlog._trim.retention import Retention, RetentionReport, enforce, report, set_retention
from zlog.aio._inspection import Inspection
from zlog.aio.check import Check
from zlog.aio.opening import Opening
from zlog.aio.stream import Stream, Tagged
from zlog.aio.writer import WINDOW_BYTES, Writer, open_writer
from zlog.limits import (
    ENTRY_BYTES_MAX_DEFAULT,
    HOLE_TIMEOUT_SECONDS,
    SEQUENCER_TIMEOUT_SECONDS,
    TIMEOUT_SECONDS,
    WIDTH_DEFAULT,
)
from zlog.store import Store
from zlog.view import View

if TYPE_CHECKING:
    from typing_extensions import Self


class Log(Tagged, Inspection):
    """A handle on one log. Make it with :meth:`create` or :meth:`open`.

    It belongs to one event loop. Handles are cheap, and independent of each other; opening one
    disturbs no writer.

    Every call takes ``timeout=``: one budget in seconds for all that the call does, retries
    included. None is no limit; where it is not given (``...``) the handle's own counts, 30 seconds
    unless set when opening. A time-out of a write leaves open whether it took effect.

    Raises, from every method: LogNotFound when the log was removed, StoreTimeout when the budget
    ran out, and StoreUnavailable or ClassNotLoaded when the store refuses.
    """

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
        """Make a log and open it.

        Args:
            store: where; see :func:`zlog.connect`.
            name: 1 to 128 letters, digits, ``_``, ``.`` or ``-``.
            width: stripe objects over which positions are spread, 1 to 1024. More objects take
                more writes at the same time, and cost more operations per range read.
            unit: positions in a row that lie in one of them, a power of two up to 65,536. A larger
                one makes fewer operations of small batches, and has single appends at the same
                time meet in one object. None: 256, or 1 where clients run the class's methods.
            stripe_bytes: when one of its objects holds this many bytes, a stripe is ended and the
                next one started; 96 MiB if None.
            stripe_records: the same for the records (omap keys) of an object; 100,000 if None.
            compression: ``zstd``, ``lz4`` or ``none``, which None is: how writers compress what
                goes to one object at once, where that pays. Readers need no setting.
            options: settings that travel with the log, for its users: names of up to 128 bytes,
                values of up to 4096.
            timeout, hole_timeout, sequencer_timeout, entry_bytes_max: see :meth:`open`.
            mac_key: authenticate entries with this key: see :meth:`open`. For the log's whole life.

        Raises:
            LogExists: there is one of this name.
            ValueError: the name, the width, the unit, an option or a setting is invalid.
        """
        new = LogOptions(width, unit, stripe_bytes, stripe_records, compression, options)
        key = key_of(mac_key)
        handle = HandleOptions(timeout, hole_timeout, sequencer_timeout, entry_bytes_max, key)
        return Opening(cls._open(store, name, handle, new, exclusive=True), cls.close)

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
        """Open a log.

        Args:
            store: where; see :func:`zlog.connect`. It must stay open as long as the log.
            name: the log's name.
            create: make the log if there is none. Of several clients that do so at the same time
                one makes it, and all open the same log.
            width, unit, stripe_bytes, stripe_records, compression, options: with ``create``, how to
                make it; see :meth:`create`. A log that is there stays as it is.
            timeout: budget of each call in seconds; None for no limit.
            hole_timeout: seconds that range reads and followers wait for an unwritten position
                before they fill it; None to never fill, and see such positions as gaps.
            sequencer_timeout: seconds that a sequencer may be out of reach before appends go on
                without it.
            entry_bytes_max: bytes of one entry that ``append`` accepts, at most 16 MiB.
            mac_key: the key that the log was made with, 16 to 4,096 bytes: as bytes, as the path
                of a file that has them and nothing else, or as a function that returns them, which
                is called once. Each entry that is appended gets a MAC, and each that is read is
                checked: one that the store's owner has changed, moved or made is a gap of kind
                FORGED. Without the key such a log can be trimmed and looked after, and neither
                read nor appended to (KeyNeeded).

        Raises:
            LogNotFound: no such log, and ``create`` is not given.
            WrongKey: the log was made with another ``mac_key``.
            MacsMissing: it was made without one, or its store's owner has made it look so.
            ValueError: a setting is invalid, such as a negative time-out.
        """
        new = LogOptions(width, unit, stripe_bytes, stripe_records, compression, options)
        key = key_of(mac_key)
        handle = HandleOptions(timeout, hole_timeout, sequencer_timeout, entry_bytes_max, key)
        return Opening(cls._open(store, name, handle, new.only_if(create)), cls.close)

    @classmethod
    async def _open(
        cls,
        store: Store,
        name: str,
        options: HandleOptions,
        new: LogOptions | None,
        *,
        exclusive: bool = False,
    ) -> Self:
        io = AsyncioIo(store, f"the log {name!r}")
        try:
            return cls(await drive(LogClient.open(io, name, options, new, exclusive=exclusive)))
        except BaseException:
            await drive(io.close())
            raise

    @staticmethod
    async def list(
        store: Store,
        *,
        after: str = "",
        count: int | None = None,
        timeout: float | None = TIMEOUT_SECONDS,
    ) -> builtins.list[str]:
        """Return the names of the store's logs, in order.

        No log is looked at. One that is being made or removed just now, or whose maker or remover
        died, may be listed, and opening it raise `LogNotFound`.

        Args:
            store: see :func:`zlog.connect`.
            after: names above it only, for a listing in pages.
            count: as many names at most; None: all.
            timeout: budget of the call.
        """
        io = AsyncioIo(store)
        try:
            return await drive(list_logs(io, deadline_of(io, timeout), after=after, count=count))
        finally:
            await drive(io.close())

    @staticmethod
    async def remove(store: Store, name: str, *, timeout: float | None = TIMEOUT_SECONDS) -> None:
        """Remove a log with all its entries. An interrupted removal is finished by the next.

        Raises:
            LogNotFound: no such log.
        """
        io = AsyncioIo(store)
        try:
            await drive(remove_log(io, name, deadline_of(io, timeout)))
        finally:
            await drive(io.close())

    async def fill(self, position: int, *, timeout: Timeout = ...) -> None:
        """Fill an unwritten position, so that readers can pass. Safe to repeat.

        Raises:
            AlreadyWritten: it holds an entry.
            CorruptEntry: what was stored there is lost.
            BeyondTail: it has not been handed out yet.
        """
        await drive(self._client.fill(position, self._deadline(timeout)))

    async def trim(self, position: int, *, timeout: Timeout = ...) -> None:
        """Mark one position as no longer needed and free its space. Safe to repeat.

        Raises:
            BeyondTail: it has not been handed out yet.
        """
        await drive(self._client.trim(position, self._deadline(timeout)))

    async def trim_to(
        self, position: int, *, past_cursors: bool = False, timeout: Timeout = ...
    ) -> None:
        """Trim every position below ``position``. Safe to repeat.

        Args:
            position: the first one that stays.
            past_cursors: trim also what readers with a named :meth:`cursor` have not read.
            timeout: budget of the call; when it runs out, what was trimmed stays so.

        Raises:
            BeyondTail: some of them have not been handed out yet.
            HeldByCursor: some of them have not been read yet. Nothing was trimmed.
        """
        await drive(
            self._client.trim_to(position, self._deadline(timeout), past_cursors=past_cursors)
        )

    async def set_retention(self, retention: Retention, *, timeout: Timeout = ...) -> None:
        """Set what is kept of the log from now on: a new view, in which only options differ.

        It trims nothing by itself: the sequencer that leads enforces it from time to time, and
        :meth:`apply_retention` does at once.
        """
        await drive(set_retention(self._client.layout, retention, self._deadline(timeout)))

    async def apply_retention(self, *, timeout: Timeout = ...) -> int:
        """Trim now what need not be kept, and return the first position that is left.

        No cursor of a reader is passed. With nothing set, nothing is trimmed. An entry's age is
        counted from the first call that saw it, by no wall clock, so that a limit of age takes
        effect by calls from time to time.
        """
        return await drive(enforce(self._client.reader, self._deadline(timeout)))

    async def retention_report(self, *, timeout: Timeout = ...) -> RetentionReport:
        """Return how old entries are known to be, and whether clocks were doubted."""
        return await drive(report(self._client.layout, self._deadline(timeout)))

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
        """Change the log's width or options while it is used, and return the view that does.

        Appends wait for some milliseconds meanwhile; everything written stays where it is. What
        is as wanted already stays as it is, so a call may be repeated.

        Args:
            width: stripe objects over which positions from now on are spread: the live stripe is
                ended, and one of this width started.
            unit: the same of the positions in a row that lie in one of them.
            stripe_bytes, stripe_records, compression: see :meth:`create`.
            options: to set, or to take away (None); others stay as they are.
            timeout: budget of the call.

        Raises:
            ValueError: a width, a unit or an option is invalid.
        """
        new = LogOptions(width, unit, stripe_bytes, stripe_records, compression, options)
        return await drive(reconfigure(self._client.layout, new, self._deadline(timeout)))

    async def roll(self, *, rescue: bool = False, timeout: Timeout = ...) -> View:
        """End the live stripe, start the next one of the same kind, and return the new view.

        Stripes roll by themselves when they are full. On purpose: so that what is in the live one
        can be trimmed as a whole and its objects removed, or to go on in new objects. Appends wait
        for some milliseconds meanwhile. Each call starts one more stripe; of several clients that
        do so at once one does it for all.

        Args:
            rescue: start it where the log's entries end, if the tail was moved so far away from
                them that the log is of no use. What lies further up is given up.
            timeout: seconds; with ``rescue`` all of the live stripe is looked at.
        """
        return await drive(roll(self._client.layout, self._deadline(timeout), rescue=rescue))

    def writer(
        self,
        name: str | None = None,
        *,
        window_bytes: int = WINDOW_BYTES,
        capacity: int | None = None,
        when_full: Literal["wait", "raise"] = "wait",
        timeout: Timeout = ...,
    ) -> Opening[Writer]:
        """Make this client the only one that appends to the log, and return its writer.

        The writer before it, if there is one, is fenced: it confirms nothing more. What it has
        confirmed is in the log, and of what it had under way a part, from the front on, may be.
        Appends of all other clients are refused, until the writer gives the log back. Readers are
        not disturbed.

        Args:
            name: what it calls itself, for those that find the log taken; host and process if None.
            window_bytes: data that may be handed in and not confirmed; more waits.
            capacity: data in bytes that the log may hold; None: any. For a log that is trimmed as
                its entries are done with, such as a write-ahead log.
            when_full: whether an append above the capacity is to ``"wait"`` for a trim or to
                ``"raise"`` LimitReached.
            timeout: budget of the call.

        Raises:
            AppendRefused: the log is a mirror, or read-only.
            Fenced: another writer took the log at the same time.
        """
        limits = Limits(window_bytes, capacity, when_full)
        return Opening(open_writer(self._client, name, limits, timeout), Writer.close)

    async def fence(self, *, timeout: Timeout = ...) -> View:
        """Take the log from its exclusive writer, if it has one: any client may append again."""
        return await drive(open_to_all(self._client.layout, self._deadline(timeout)))

    async def read_only(self, *, timeout: Timeout = ...) -> View:
        """Have the log take no appends, of any client. An exclusive writer is fenced.

        All else goes on: reading, trimming, removing. Safe to repeat.

        Raises:
            AppendRefused: the log is a mirror.
        """
        return await drive(set_read_only(self._client.layout, True, self._deadline(timeout)))

    async def writable(self, *, timeout: Timeout = ...) -> View:
        """Have the log take appends again. Safe to repeat.

        Raises:
            AppendRefused: the log is a mirror.
        """
        return await drive(set_read_only(self._client.layout, False, self._deadline(timeout)))

    async def promote(self, *, timeout: Timeout = ...) -> None:
        """Make a mirror a log of its own, which takes appends. Other logs are left as they are.

        Copying to it ends, and can't go on. Positions that were being copied, which no reader has
        seen, are trimmed: the log is a copy of its source up to one position.
        """
        await drive(promote(self._client.reader, self._deadline(timeout)))

    def stream(self, tag: str) -> Stream:
        """Return the entries that have a tag as a log of its own; nothing is read or made for it.

        Raises:
            InvalidTag, TypeError: it is no tag.
        """
        return Stream(self, *tags_checked((tag,)))

    def check(
        self,
        *,
        orphans: bool = True,
        heal: bool = False,
        copies: int = 0,
        rebuild_index: bool = False,
        progress: Progress | None = None,
    ) -> Check:
        """Audit the log while it is used; yields what is wrong, nothing if all is well.

        Every object checks its entries' bytes itself, all of them at the same time, so that no
        data travels. The log is left as it is, with one exception: asking for the tail may finish a
        layout change whose author died.

        Args:
            orphans: look for objects that no view has, which takes a list of the store's objects.
                On Ceph that goes through all objects of the namespace, other logs' too, and needs
                the permission to read; without it the summary says that it was not done.
            heal: put right what the primary copy of an object has damaged and another copy has.
                Only a store on Ceph has several copies. What is sound is never changed.
            copies: go through the log this many times more, at copies that are chosen at random,
                and tell what one of them has lost that others have; with ``heal`` put it back.
            rebuild_index: make anew what is wrong in the objects' indexes of tags.
            progress: called now and then with how many positions were looked at, and how many
                there are.
        """
        checker = Checker(
            self._client.reader,
            self._client.budget,
            orphans=orphans,
            heal=heal,
            copies=copies,
            rebuild_index=rebuild_index,
            progress=progress,
        )
        return Check(checker)

    async def close(self) -> None:
        """Wait for appends under way and close this handle; the store stays open.

        Safe to call twice.
        Every call on the handle afterwards raises StoreUnavailable.
        """
        await self._shared.drain()
        await drive(self._client.io.close())

    def __repr__(self) -> str:
        return f"<zlog.aio.Log {self._client.layout}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
