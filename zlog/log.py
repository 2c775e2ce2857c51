"""The synchronous log: what most programs use."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn

from zlog._append.delivery_records import DeliveryKey, DeliverySource
from zlog._audit.check import Checker, Progress
from zlog._base.deadline import Timeout
from zlog._base.io import deadline_of
from zlog._base.options import merged_options
from zlog._base.settings import Settings
from zlog._client import LogClient, entry_iterable, entry_list, new_log
from zlog._io import BlockingIo, drive
from zlog._layout.admin import NewLog, list_logs, remove_log
from zlog._layout.positions import PositionSpec
from zlog._layout.reconfigure import reconfigure, roll
from zlog._layout.stat import LogStat, stat
from zlog._native.core import Items
from zlog._read.columns import Columns, ColumnsReader
from zlog._read.cursors import CursorState
from zlog._read.iterate import Follower, RangeReader
from zlog._transfer.promote import promote
from zlog._trim.retention import Retention, enforce, set_retention
from zlog.check import Check
from zlog.cursor import Cursor
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


class Log:
    """A handle on one log. Make it with :meth:`create` or :meth:`open`.

    Handles are cheap, thread-safe, and independent of each other; opening one disturbs no writer.
    Every call takes ``timeout=``: one budget in seconds for all that the call does, retries
    included. None is no limit; where it is not given (``...``) the handle's own counts, 30 seconds
    unless set when opening. A time-out of a write leaves open whether it took effect.

    Raises, from every method: LogNotFound when the log was removed, StoreTimeout when the budget
    ran out, and StoreUnavailable or ClassNotLoaded when the store refuses.
    """

    def __init__(self, client: LogClient) -> None:
        """Wrap a client; programs call :meth:`open` or :meth:`create`."""
        self._client = client
        self._deadline = client.deadline

    @classmethod
    def create(
        cls,
        store: Store,
        name: str,
        *,
        width: int = WIDTH_DEFAULT,
        stripe_bytes: int | None = None,
        stripe_records: int | None = None,
        options: Mapping[str, str] | None = None,
        timeout: float | None = TIMEOUT_SECONDS,
        hole_timeout: float | None = HOLE_TIMEOUT_SECONDS,
        sequencer_timeout: float = SEQUENCER_TIMEOUT_SECONDS,
        entry_bytes_max: int = ENTRY_BYTES_MAX_DEFAULT,
    ) -> Log:
        """Make a log and open it.

        Args:
            store: where; see :func:`zlog.connect`.
            name: 1 to 128 letters, digits, ``_``, ``.`` or ``-``.
            width: stripe objects over which positions are spread, 1 to 1024. More objects take
                more writes at the same time, and cost more operations per range read.
            stripe_bytes: when one of its objects holds this many bytes, a stripe is ended and the
                next one started; 96 MiB if None.
            stripe_records: the same for the records (omap keys) of an object; 100,000 if None.
            options: settings that travel with the log, for its users: names of up to 128 bytes,
                values of up to 4096.
            timeout, hole_timeout, sequencer_timeout, entry_bytes_max: see :meth:`open`.

        Raises:
            LogExists: there is one of this name.
            ValueError: the name, the width, an option or a setting is invalid.
        """
        settings = Settings(timeout, hole_timeout, sequencer_timeout, entry_bytes_max)
        new = NewLog.of(width, stripe_bytes, stripe_records, options)
        io = BlockingIo(store, f"the log {name!r}")
        return cls(drive(LogClient.create(io, name, new, settings)))

    @classmethod
    def open(
        cls,
        store: Store,
        name: str,
        *,
        create: bool = False,
        width: int | None = None,
        stripe_bytes: int | None = None,
        stripe_records: int | None = None,
        options: Mapping[str, str] | None = None,
        timeout: float | None = TIMEOUT_SECONDS,
        hole_timeout: float | None = HOLE_TIMEOUT_SECONDS,
        sequencer_timeout: float = SEQUENCER_TIMEOUT_SECONDS,
        entry_bytes_max: int = ENTRY_BYTES_MAX_DEFAULT,
    ) -> Log:
        """Open a log.

        Args:
            store: where; see :func:`zlog.connect`. It must stay open as long as the log.
            name: the log's name.
            create: make the log if there is none. Of several clients that do so at the same time
                one makes it, and all open the same log.
            width, stripe_bytes, stripe_records, options: with ``create``, how to make it; see
                :meth:`create`. A log that is there stays as it is.
            timeout: budget of each call in seconds; None for no limit.
            hole_timeout: seconds that range reads and followers wait for an unwritten position
                before they fill it; None to never fill, and see such positions as gaps.
            sequencer_timeout: seconds that a sequencer may be out of reach before appends go on
                without it.
            entry_bytes_max: bytes of one entry that ``append`` accepts, at most 16 MiB.

        Raises:
            LogNotFound: no such log, and ``create`` is not given.
            ValueError: a setting is invalid, such as a negative time-out.
        """
        settings = Settings(timeout, hole_timeout, sequencer_timeout, entry_bytes_max)
        new = new_log(create, width, stripe_bytes, stripe_records, options)
        io = BlockingIo(store, f"the log {name!r}")
        return cls(drive(LogClient.open(io, name, settings, new)))

    @staticmethod
    def list(store: Store, *, timeout: float | None = TIMEOUT_SECONDS) -> builtins.list[str]:
        """Return the names of the store's logs, in order."""
        io = BlockingIo(store)
        return drive(list_logs(io, deadline_of(io, timeout)))

    @staticmethod
    def remove(store: Store, name: str, *, timeout: float | None = TIMEOUT_SECONDS) -> None:
        """Remove a log with all its entries. An interrupted removal is finished by the next.

        Raises:
            LogNotFound: no such log.
        """
        io = BlockingIo(store)
        drive(remove_log(io, name, deadline_of(io, timeout)))

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
        """The id, 32 hex digits, that this handle's appends and fills carry, and no other's."""
        return self._client.writer.hex()

    @property
    def view(self) -> View:
        """The newest layout that this handle has seen; no request is made."""
        return self._client.layout.view

    def append(self, data: bytes, *, timeout: Timeout = ...) -> int:
        """Append one entry and return its position, once it is durable.

        Raises:
            EntryTooLarge: nothing was sent.
            StoreTimeout: the entry may be in the log or not, at one position at most.
        """
        return drive(self._client.appender.append([data], self._deadline(timeout)))[0]

    def append_many(
        self, entries: Iterable[bytes], *, timeout: Timeout = ...
    ) -> builtins.list[int]:
        """Append entries in one go and return their positions, in the entries' order.

        Much faster than one by one: a range of positions is asked for once, and each stripe object
        gets one write. Positions ascend, except for an entry that lost its position meanwhile:
        because a reader filled it, because the layout changed, or, without a sequencer, because
        another writer was faster. That one moves behind its successors. Entries that must never
        change places are appended one by one.

        Raises:
            EntryTooLarge: nothing was sent.
            ZlogError: as in :meth:`append`; its ``positions`` tells what was acknowledged before.
        """
        data = entry_list(entries)
        return drive(self._client.appender.append(data, self._deadline(timeout)))

    def reserve(self, count: int = 1, *, timeout: Timeout = ...) -> range:
        """Take positions without writing to them yet, and return them: they follow each other.

        They are handed out to no one else, whatever becomes of the sequencer and the layout. Write
        to each with :meth:`write`, from any process. A position that is not written is a hole:
        readers wait for it as long as their ``hole_timeout`` says, one second unless set, and then
        fill it, after which it can't be written any more. :meth:`fill` what is not needed.

        Args:
            count: 1 to 65,536.
            timeout: budget of the call.

        Raises:
            SequencerUnavailable: the log has no sequencer. Without one, writers take what is free.
        """
        return drive(self._client.reserved.reserve(count, self._deadline(timeout)))

    def write(self, position: int, data: bytes, *, timeout: Timeout = ...) -> None:
        """Write an entry at a position that was reserved, and return once it is durable.

        Safe to repeat with the same data, also in another process: it finds the entry there.

        Raises:
            AlreadyWritten: the position holds another entry.
            Invalidated: it was filled or trimmed; ``gap`` says which. Reserve another one.
            BeyondTail: it was not handed out yet.
            EntryTooLarge: nothing was sent.
            StoreTimeout: the entry may be there or not.
        """
        drive(self._client.reserved.write(position, data, self._deadline(timeout)))

    def deliver(
        self,
        entries: Iterable[bytes],
        *,
        source: str,
        batch: int,
        part: int = 0,
        timeout: Timeout = ...,
    ) -> int:
        """Append entries exactly once, however often it is tried and fails meanwhile.

        Source, batch and part name the delivery. After a failure, of the call, the process or the
        machine, deliver the same entries under the same name again, in any order: those that are
        in the log stay where they are, the others are appended. While two try at the same time,
        the later one goes on and the other one fails.

        Equal entries count as often as they are given. Where a delivery that failed was trimmed
        before it was repeated, what is gone looks like what never came, and is appended
        again.

        Args:
            entries: taken as they are needed, up to 16 MiB at a time.
            source: who delivers: a name of your own, of 1 to 128 letters, digits, `_`, `.`, `-`.
            batch: 0 or more; see :meth:`deliveries_done`.
            part: batches may be delivered in parts, at the same time; which entry is in which part
                must be the same each time.
            timeout: for each round of up to 16,384 entries or 16 MiB.

        Returns:
            How many entries this call has appended.

        Raises:
            DeliverySuperseded: another attempt has begun since, or the batch is done.
            DeliveryDiffers: an earlier attempt has appended something else.
            EntryTooLarge: those before it may be appended.
            ZlogError: as in :meth:`append`; after any error the delivery can be repeated.
        """
        key = DeliveryKey(source, batch, part)
        return drive(self._client.deliveries.deliver(entry_iterable(entries), key, timeout))

    def deliveries_done(self, source: str, *, before: int, timeout: Timeout = ...) -> None:
        """Say which batches of a source are delivered, so that the log need not remember them.

        They are never delivered again: an attempt that was cut off for a while, and comes back,
        gets DeliverySuperseded. Safe to repeat.

        Args:
            source: as in :meth:`deliver`.
            before: batches below this one are done.
            timeout: budget of the call.
        """
        drive(self._client.deliveries.records.done(source, before, self._deadline(timeout)))

    def forget_source(self, source: str, *, timeout: Timeout = ...) -> None:
        """Forget a source of deliveries that is gone for good, and all that it has delivered.

        Its entries stay in the log. A source that comes again by this name starts afresh: what it
        delivers is appended, delivered before or not. Safe to repeat. When the call is broken off,
        by a time-out or a death, all that the source delivers is refused until it is repeated.

        Args:
            source: as in :meth:`deliver`.
            timeout: budget of the call.
        """
        drive(self._client.deliveries.records.forget(source, self._deadline(timeout)))

    def sources(self, *, timeout: Timeout = ...) -> builtins.list[DeliverySource]:
        """Return all sources of deliveries that the log knows, in the order of their names.

        A log takes 1,024 of them. Remove those that are gone with :meth:`forget_source`.
        """
        return drive(self._client.deliveries.records.sources(self._deadline(timeout)))

    def read(self, position: int, *, timeout: Timeout = ...) -> Entry:
        """Read one entry as it is now, without waiting for it.

        Raises:
            NotWritten: nothing there yet.
            Invalidated: filled or trimmed.
            CorruptEntry: its bytes are damaged or its object is missing.
        """
        return drive(self._client.read(position, self._deadline(timeout)))

    def read_range(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        hole_timeout: Timeout = ...,
    ) -> Iterator[Entry | Gap]:
        """Iterate over ``[start, end)`` in order, as far as the tail when the first is read.

        Every position is accounted for: as an Entry, or inside a Gap.

        Args:
            start: the first position.
            end: one past the last; None or beyond the tail: up to the tail.
            hole_timeout: as in :meth:`open`; if not given, the handle's own.
        """
        client = self._client
        reader = RangeReader(client.reader, client.budget, start, end, hole_timeout)
        return Items(lambda: drive(reader.next()))

    def read_columns(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        indexes: Collection[int] | None = None,
        window_bytes: int | None = None,
        hole_timeout: Timeout = ...,
    ) -> Iterator[Columns]:
        """Iterate over ``[start, end)`` as :meth:`read_range` does, a window of entries at a time.

        Made for tables: no Python object per entry. A window has positions of one stripe.

        Args:
            start: the first position.
            end: one past the last; None or beyond the tail: up to the tail.
            indexes: read only the positions of these stripe objects, those p with ``p % width`` in
                ``indexes``, where ``width`` is the stripe's; None: all.
            window_bytes: data that a window aims at, 8 MiB unless given; three windows are in
                memory at a time. A window of a few large entries may take more.
            hole_timeout: as in :meth:`open`; if not given, the handle's own.

        Raises:
            ValueError: a negative position or index, or no room for a window.
        """
        client = self._client
        reader = ColumnsReader(
            client.reader, client.budget, start, end, indexes, window_bytes, hole_timeout
        )
        return Items(lambda: drive(reader.next()))

    def follow(self, start: int = 0, *, hole_timeout: Timeout = ...) -> Iterator[Entry | Gap]:
        """Iterate from ``start`` on, for ever: wait at the tail for new entries.

        With a sequencer, new entries are announced; without one the tail is looked up, at least
        four times a second. A reader that trim overtakes gets a Gap and goes on.

        Args:
            start: the first position; it may lie ahead of the tail.
            hole_timeout: as in :meth:`open`; if not given, the handle's own. None makes the reader
                wait at a hole until another client settles it.
        """
        client = self._client
        follower = Follower(client.reader, client.budget, start, hole_timeout)
        return Items(lambda: drive(follower.next()))

    def fill(self, position: int, *, timeout: Timeout = ...) -> None:
        """Fill an unwritten position, so that readers can pass. Safe to repeat.

        Raises:
            AlreadyWritten: it holds an entry.
            BeyondTail: it has not been handed out yet.
        """
        drive(self._client.fill(position, self._deadline(timeout)))

    def trim(self, position: int, *, timeout: Timeout = ...) -> None:
        """Mark one position as no longer needed and free its space. Safe to repeat.

        Raises:
            BeyondTail: it has not been handed out yet.
        """
        drive(self._client.trim(position, self._deadline(timeout)))

    def trim_to(self, position: int, *, past_cursors: bool = False, timeout: Timeout = ...) -> None:
        """Trim every position below ``position``. Safe to repeat.

        Args:
            position: the first one that stays.
            past_cursors: trim also what readers with a named :meth:`cursor` have not read.
            timeout: budget of the call; when it runs out, what was trimmed stays so.

        Raises:
            BeyondTail: some of them have not been handed out yet.
            HeldByCursor: some of them have not been read yet. Nothing was trimmed.
        """
        drive(self._client.trim_to(position, self._deadline(timeout), past_cursors=past_cursors))

    @property
    def retention(self) -> Retention:
        """What is kept of the log, as this handle's newest :attr:`view` has it."""
        return Retention.of(self.view.options)

    def set_retention(self, retention: Retention, *, timeout: Timeout = ...) -> None:
        """Set what is kept of the log from now on: a new view, in which only options differ.

        It trims nothing by itself: the sequencer that leads enforces it from time to time, and
        :meth:`apply_retention` does at once.
        """
        drive(set_retention(self._client.layout, retention, self._deadline(timeout)))

    def apply_retention(self, *, timeout: Timeout = ...) -> int:
        """Trim now what need not be kept, and return the first position that is left.

        No cursor of a reader is passed. With nothing set, nothing is trimmed. Ages go by the
        entries' times and this machine's clock; bytes are exact to whole stripes and go by the
        entries' average size inside one.
        """
        return drive(enforce(self._client.reader, self._deadline(timeout)))

    def reconfigure(
        self,
        *,
        width: int | None = None,
        stripe_bytes: int | None = None,
        stripe_records: int | None = None,
        options: Mapping[str, str | None] | None = None,
        timeout: Timeout = ...,
    ) -> View:
        """Change the log's width or options while it is used, and return the view that does.

        Appends wait for some milliseconds meanwhile; everything written stays where it is. What
        is as wanted already stays as it is, so a call may be repeated.

        Args:
            width: stripe objects over which positions from now on are spread: the live stripe is
                ended, and one of this width started.
            stripe_bytes, stripe_records: see :meth:`create`.
            options: to set, or to take away (None); others stay as they are.
            timeout: budget of the call.

        Raises:
            ValueError: a width or an option is invalid.
        """
        wanted = merged_options(options, stripe_bytes, stripe_records)
        return drive(reconfigure(self._client.layout, width, wanted, self._deadline(timeout)))

    def roll(self, *, timeout: Timeout = ...) -> View:
        """End the live stripe, start the next one of the same width, and return the new view.

        Stripes roll by themselves when they are full. On purpose: so that what is in the live one
        can be trimmed as a whole and its objects removed, or to go on in new objects. Appends wait
        for some milliseconds meanwhile. Each call starts one more stripe; of several clients that
        do so at once one does it for all.
        """
        return drive(roll(self._client.layout, self._deadline(timeout)))

    def promote(self, *, timeout: Timeout = ...) -> None:
        """Make a mirror a log of its own, which takes appends. Other logs are left as they are.

        Copying to it ends, and can't go on. Positions that were being copied, which no reader has
        seen, are trimmed: the log is a copy of its source up to one position.
        """
        drive(promote(self._client.reader, self._deadline(timeout)))

    def tail(self, *, checked: bool = True, timeout: Timeout = ...) -> int:
        """Return the next position that will be handed out.

        A reader that begins there gets only what comes from now on.

        Args:
            checked: the answer is linearizable: above everything acknowledged before the call, and
                never below an earlier checked answer to any client. The head records it, which
                costs one operation. Unchecked, it is what the sequencer says, and one that was
                replaced a moment ago may answer once more, too high or too low.
            timeout: budget of the call.
        """
        return drive(self._client.positions.tail(self._deadline(timeout), checked=checked))

    def earliest(self, *, timeout: Timeout = ...) -> int:
        """Return the first position that is not trimmed; the tail when all are.

        A reader that begins there misses nothing that is left. The position may hold no entry
        itself, when it was filled or trimmed alone.
        """
        return drive(self._client.positions.resolve("earliest", self._deadline(timeout)))

    def find_time(self, when: datetime | float, *, timeout: Timeout = ...) -> int:
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
        return drive(self._client.find_time(when, self._deadline(timeout)))

    def cursor(
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
        drive(cursor.open(create, timeout))
        return Cursor(cursor)

    def cursors(self, *, timeout: Timeout = ...) -> builtins.list[CursorState]:
        """Return all cursors of the log, in the order of their names."""
        return drive(self._client.cursors.list(self._deadline(timeout)))

    def stripes(
        self, start: int = 0, end: int | None = None, *, timeout: Timeout = ...
    ) -> builtins.list[Stripe]:
        """Return all stripes that hold positions of ``[start, end)``, in ascending order.

        The archived ones too, which a :attr:`view` does not name. Every position of the range that
        was handed out before the call, and that is not trimmed, lies in one of them. Stripes that
        are trimmed as a whole are left out. Asks the head object: once, and once more for every
        1,024 archived stripes that this handle has not looked up yet.

        Args:
            start: the first position.
            end: one past the last; None: the range has no end, and the open stripe is the last.
            timeout: budget of the call.

        Raises:
            CorruptEntry: the head has lost a stripe.
        """
        return drive(self._client.stripes(start, end, self._deadline(timeout)))

    def stat(self, start: int = 0, end: int | None = None, *, timeout: Timeout = ...) -> LogStat:
        """Return the log at a glance; asks every stripe object once.

        Args:
            start, end: count only the stripes that hold positions of ``[start, end)``, each as a
                whole; None: the range has no end.
            timeout: budget of the call.
        """
        return drive(stat(self._client.positions, start, end, self._deadline(timeout)))

    def views(self, *, timeout: Timeout = ...) -> builtins.list[View]:
        """Return the layouts of the last 128 epochs, oldest first."""
        return drive(self._client.layout.head.views(self._deadline(timeout)))

    def check(self, *, orphans: bool = True, progress: Progress | None = None) -> Check:
        """Audit the log while it is used; yields what is wrong, nothing if all is well.

        Every object checks its entries' bytes itself, all of them at the same time, so that no
        data travels. The log is left as it is, with one exception: asking for the tail may finish a
        layout change whose author died.

        Args:
            orphans: look for objects that no view has, which takes a list of the store's objects.
                On Ceph that goes through all objects of the namespace, other logs' too, and needs
                the permission to read; without it the summary says that it was not done.
            progress: called now and then with how many positions were looked at, and how many
                there are.
        """
        client = self._client
        return Check(Checker(client.positions, client.budget, orphans=orphans, progress=progress))

    def close(self) -> None:
        """Close this handle; the store stays open. Safe to call twice.

        Every call on the handle afterwards raises StoreUnavailable.
        """
        drive(self._client.io.close())

    def __repr__(self) -> str:
        return f"<zlog.Log {self._client.layout}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a log can't be pickled or copied: open {self.name!r} in the other process"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
