"""The class `Log`, which most programs use."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from zlog._append.ownership import open_to_all, set_read_only
from zlog._append.quota import WriterLimits
from zlog._audit.check import Checker, Progress
from zlog._base.deadline import Deadline, Timeout
from zlog._base.io import Io, deadline_of
from zlog._base.log_options import LogOptions
from zlog._base.mac import MacKeySource, key_of
from zlog._base.options import check_unreserved
from zlog._base.settings import HandleOptions
from zlog._client import LogClient
from zlog._io.aio import AsyncioIo, drive
from zlog._layout.reconfigure import reconfigure, roll
from zlog._lifecycle import list_logs, remove_log
from zlog._native.new_entries import tags_checked
from zlog._transfer.promote import promote
from zlog._trim.retention import Retention, RetentionReport, enforce, report, set_retention
from zlog.aio._writing import Writing
from zlog.aio.check import Check
from zlog.aio.opening import Opening
from zlog.aio.stream import Stream
from zlog.aio.writer import WINDOW_BYTES, Writer, open_writer
from zlog.limits import SEQUENCER_TIMEOUT_SECONDS, TIMEOUT_SECONDS
from zlog.store import Store
from zlog.view import View

if TYPE_CHECKING:
    from typing_extensions import Self


T = TypeVar("T")


async def in_store(
    store: Store, timeout: float | None, work: Callable[[Io, Deadline], Coroutine[Any, Any, T]]
) -> T:
    """Run work that needs a store but no open log."""
    io = AsyncioIo(store)
    try:
        return await drive(work(io, deadline_of(io, timeout)))
    finally:
        await drive(io.close())


class Log(Writing):
    """A handle on one log. Create one with :meth:`create` or :meth:`open`.

    It belongs to one event loop. Handles are cheap and independent of each other.

    Every call takes ``timeout=``, the seconds that it may take in all, including retries. None
    means no limit. The default (``...``) is the handle's timeout, which is 30 seconds if you did
    not choose another. If a write times out, it may or may not have taken effect.

    Every method raises LogNotFound if the log was removed, StoreTimeout if the budget ran out, and
    StoreUnavailable or ClassNotLoaded if the store refuses.
    """

    @classmethod
    def create(
        cls,
        store: Store,
        name: str,
        *,
        width: int | None = None,
        stripe_unit: int | None = None,
        stripe_bytes: int | None = None,
        stripe_records: int | None = None,
        compression: str | None = None,
        options: Mapping[str, str] | None = None,
        timeout: float | None = TIMEOUT_SECONDS,
        hole_timeout: Timeout = ...,
        sequencer_timeout: float = SEQUENCER_TIMEOUT_SECONDS,
        entry_bytes_max: int | None = None,
        ordering: str | None = None,
        mac_key: MacKeySource | None = None,
    ) -> Opening[Self]:
        """Create a log and open it.

        Args:
            name: 1 to 128 letters, digits, ``_``, ``.`` or ``-``.
            width: the number of stripe objects, 1 to 1024. More objects can take more writes at the
                same time, but a range read then costs more operations. None means 8.
            stripe_unit: the number of consecutive positions in one object, a power of two up to
                65,536. A larger unit makes small batches cheaper, but sends concurrent single
                appends to the same object. None means 256, or 1 if clients run the class's methods.
            stripe_bytes: the size of an object in bytes at which its stripe ends and the next one
                starts; None means 96 MiB.
            stripe_records: the number of records (omap keys) in an object at which its stripe ends;
                None means 100,000.
            compression: how writers compress the data that they send to one object, if this saves
                space: ``zstd``, ``lz4`` or ``none``; None means ``none``. Readers need no setting.
            options: your own settings, which are stored with the log. Names have up to 128 bytes,
                values up to 4096.
            hole_timeout: how many seconds readers of the log wait for an unwritten position before
                they fill it; None means that they never fill it. The default is 1 second.
            entry_bytes_max: the maximum size of an entry in bytes, up to 16 MiB; None means 1 MiB.
            ordering: what assigns positions. None means ``sequencer``. ``object`` means that the
                only object of the live stripe assigns them; such a log has width 1 and no MACs.
            timeout, sequencer_timeout: see :meth:`open`.
            mac_key: authenticate all entries of the log with this key; see :meth:`open`.

        Raises:
            LogExists: a log with this name exists.
            ValueError: the name, the width, the stripe unit, an option or a setting is invalid.
        """
        given = stripe_bytes, stripe_records, compression, options, hole_timeout, entry_bytes_max
        new = LogOptions(width, stripe_unit, *given, ordering)
        handle = HandleOptions(timeout, ..., sequencer_timeout, None, key_of(mac_key))
        return Opening(cls._open(store, name, handle, new, exclusive=True), cls.close)

    @classmethod
    def open(
        cls,
        store: Store,
        name: str,
        *,
        create: bool = False,
        width: int | None = None,
        stripe_unit: int | None = None,
        stripe_bytes: int | None = None,
        stripe_records: int | None = None,
        compression: str | None = None,
        options: Mapping[str, str] | None = None,
        timeout: float | None = TIMEOUT_SECONDS,
        hole_timeout: Timeout = ...,
        sequencer_timeout: float = SEQUENCER_TIMEOUT_SECONDS,
        entry_bytes_max: int | None = None,
        ordering: str | None = None,
        mac_key: MacKeySource | None = None,
    ) -> Opening[Self]:
        """Open a log.

        Args:
            store: see :func:`zlog.connect`. It must stay open as long as the log.
            create: whether to create the log if it does not exist. Several clients may do this at
                the same time, and all get the same log.
            width, stripe_unit, stripe_bytes, stripe_records, compression, options, ordering:
                settings of a new log, used with ``create``; see :meth:`create`. An existing log is
                not changed.
            timeout: the budget of each call in seconds; None means no limit.
            hole_timeout: how many seconds range reads and followers wait for an unwritten position
                before they fill it. With None they never fill it, but report a gap. The default
                (``...``) is the log's own hole timeout, even if that changes later.
            sequencer_timeout: how many seconds a sequencer may be unreachable before appends
                continue without it.
            entry_bytes_max: the maximum size of an entry to append, in bytes, up to 16 MiB. None
                means the log's own limit, even if that changes later.
            mac_key: the key with which the log was created, 16 to 4,096 bytes. Pass the bytes, the
                path of a file that contains nothing else, or a function that returns the bytes and
                is called once. The handle adds a MAC to each entry that it appends, and checks the
                MAC of each entry that it reads. An entry that the store's owner has changed, moved
                or forged becomes a gap of kind FORGED. Without the key the log can be trimmed and
                administered, but not read or appended to (KeyNeeded).

        Raises:
            LogNotFound: the log does not exist, and ``create`` is not given.
            WrongKey: the log was created with another ``mac_key``.
            MacsMissing: the log was created without a key, or the store's owner changed its head.
            ValueError: a setting is invalid, such as a negative timeout.
        """
        given = stripe_bytes, stripe_records, compression, options
        new = LogOptions(width, stripe_unit, *given, ordering=ordering)
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
        check_unreserved((new and new.options) or {})
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

        The list may include a log that is being created or removed, which `open` does not find.

        Args:
            after: return only names above this name, to list the logs in pages.
            count: the maximum number of names; None means all.
        """
        return await in_store(
            store, timeout, lambda io, by: list_logs(io, by, after=after, count=count)
        )

    @staticmethod
    async def remove(store: Store, name: str, *, timeout: float | None = TIMEOUT_SECONDS) -> None:
        """Remove a log with all its entries. If the call is interrupted, another call finishes it.

        Raises:
            LogNotFound: the log does not exist.
        """
        await in_store(store, timeout, lambda io, by: remove_log(io, name, by))

    async def fill(self, position: int, *, timeout: Timeout = ...) -> None:
        """Fill an unwritten position, so that readers can pass it. It is safe to repeat this.

        Raises:
            AlreadyWritten: the position holds an entry.
            BeyondTail: the position was not granted yet.
        """
        await drive(self._client.fill(position, self._deadline(timeout)))

    async def trim(self, position: int, *, timeout: Timeout = ...) -> None:
        """Mark one position as no longer needed and free its space. It is safe to repeat this.

        Raises:
            BeyondTail: the position was not granted yet.
        """
        await drive(self._client.trim(position, self._deadline(timeout)))

    async def trim_to(
        self, position: int, *, past_cursors: bool = False, timeout: Timeout = ...
    ) -> None:
        """Trim every position below ``position``. It is safe to repeat this.

        Args:
            position: the first position to keep.
            past_cursors: whether to trim even entries that readers with cursors have not read.
            timeout: the budget of the call. Positions trimmed before a timeout stay trimmed.

        Raises:
            BeyondTail: some positions were not granted yet.
            HeldByCursor: a reader with a cursor has not read some positions. Nothing was trimmed.
        """
        await drive(
            self._client.trim_to(position, self._deadline(timeout), past_cursors=past_cursors)
        )

    async def set_retention(self, retention: Retention, *, timeout: Timeout = ...) -> None:
        """Set the log's retention: the limits beyond which its entries are trimmed.

        The call trims nothing. The leading sequencer enforces retention from time to time, and
        :meth:`apply_retention` enforces it at once.
        """
        await drive(set_retention(self._client.layout, retention, self._deadline(timeout)))

    async def apply_retention(self, *, timeout: Timeout = ...) -> int:
        """Trim everything that the retention does not keep. Returns the oldest position left.

        The trim does not pass a cursor. An age limit takes effect only if you call this repeatedly,
        because an entry's age is measured from the first call that saw the entry.
        """
        return await drive(enforce(self._client.reader, self._deadline(timeout)))

    async def retention_report(self, *, timeout: Timeout = ...) -> RetentionReport:
        """Return the known ages of entries, and whether clocks disagree."""
        return await drive(report(self._client.layout, self._deadline(timeout)))

    async def reconfigure(
        self,
        *,
        width: int | None = None,
        stripe_unit: int | None = None,
        stripe_bytes: int | None = None,
        stripe_records: int | None = None,
        compression: str | None = None,
        options: Mapping[str, str | None] | None = None,
        hole_timeout: Timeout = ...,
        entry_bytes_max: int | None = None,
        ordering: str | None = None,
        timeout: Timeout = ...,
    ) -> View:
        """Change the log's width or options while it is used, and return the new view.

        Appends wait for a few milliseconds. Existing entries stay in their objects. It is safe to
        repeat this call, because it has no effect if nothing changes.

        Args:
            width: the number of stripe objects for new positions. The live stripe ends, and a
                stripe of this width starts.
            stripe_unit: the number of consecutive positions in one object. The live stripe ends,
                and a stripe with this unit starts.
            stripe_bytes, stripe_records, compression, hole_timeout, entry_bytes_max: see
                :meth:`create`. Open handles use the new values once they learn of the new view, at
                the latest with their next call of :meth:`tail` or successful append.
            options: the options to set. The value None removes an option; other options are kept.
            ordering: ``object`` or ``sequencer``; see :meth:`create`. If it changes, the live
                stripe ends. Switching to ``object`` makes the width 1, which stays when switching
                back unless you give another one.

        Raises:
            ValueError: a width, a stripe unit or an option is invalid. Or the log is to be ordered
                by its object, but is a mirror, is exclusive, has MACs, or is to get another width.
        """
        given = stripe_bytes, stripe_records, compression, options, hole_timeout, entry_bytes_max
        new = LogOptions(width, stripe_unit, *given, ordering)
        return await drive(reconfigure(self._client.layout, new, self._deadline(timeout)))

    async def roll(self, *, rescue: bool = False, timeout: Timeout = ...) -> View:
        """End the live stripe, start the next one with the same settings, and return the new view.

        A full stripe ends by itself. Call this to continue in new objects earlier, for example so
        that a later trim can remove the present objects. Appends wait for a few milliseconds.
        Concurrent calls start only one stripe.

        Args:
            rescue: whether to start the new stripe directly after the log's entries. This repairs a
                log whose tail was moved so far up that appends fail.
            timeout: the budget of the call. If ``rescue`` is set, the whole live stripe is read.
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

        An earlier writer is fenced. The log keeps the entries that it has confirmed, and perhaps a
        prefix of those in flight. Appends of all other clients are refused until the new writer
        releases the log. Readers are not affected.

        Args:
            name: the writer's name, which clients see when their appends are refused; None means a
                name that consists of the host and the process.
            window_bytes: the maximum size of unconfirmed data. Above it, submissions wait.
            capacity: the maximum size of the log's data in bytes; None means no limit. Use this for
                a log that is trimmed as its entries are processed, such as a write-ahead log.
            when_full: whether an append above the capacity should ``"wait"`` for a trim, or
                ``"raise"`` LimitReached.

        Raises:
            AppendRefused: the log is a mirror or read-only.
            Fenced: another writer took the log at the same time.
        """
        limits = WriterLimits(window_bytes, capacity, when_full)
        return Opening(open_writer(self._client, name, limits, timeout), Writer.close)

    async def fence(self, *, timeout: Timeout = ...) -> View:
        """Fence the log's exclusive writer, if there is one, so that any client can append."""
        return await drive(open_to_all(self._client.layout, self._deadline(timeout)))

    async def read_only(self, *, timeout: Timeout = ...) -> View:
        """Refuse all appends to the log from now on. An exclusive writer is fenced.

        You can still read, trim and remove the log. It is safe to repeat this.

        Raises:
            AppendRefused: the log is a mirror.
        """
        return await drive(set_read_only(self._client.layout, True, self._deadline(timeout)))

    async def writable(self, *, timeout: Timeout = ...) -> View:
        """Allow appends to the log again. It is safe to repeat this.

        Raises:
            AppendRefused: the log is a mirror.
        """
        return await drive(set_read_only(self._client.layout, False, self._deadline(timeout)))

    async def promote(self, *, timeout: Timeout = ...) -> None:
        """Turn a mirror into an independent log that accepts appends. Other logs are not changed.

        Copying to the mirror ends for good. Positions that were still being copied, which no reader
        has seen, are trimmed. All positions below them are an exact copy of the source.
        """
        await drive(promote(self._client.reader, self._deadline(timeout)))

    def stream(self, tag: str) -> Stream:
        """Return the stream of all entries with a tag. This makes no request to the store.

        Raises:
            InvalidTag, TypeError: the tag is invalid.
        """
        return Stream(self, *tags_checked((tag,)))

    def check(
        self,
        *,
        orphans: bool = True,
        repair: bool = False,
        replicas: int = 0,
        rebuild_index: bool = False,
        progress: Progress | None = None,
    ) -> Check:
        """Audit the log while it is in use, and yield what is wrong with it.

        The objects check their own entries, so no data is sent. The log is not changed, with one
        exception: if a client died while it changed the layout, the audit may finish that change.

        Args:
            orphans: also look for objects that belong to no view. On Ceph this lists all objects of
                the namespace. If the client may not list them, the summary's ``listed`` is False.
            repair: repair damage in an object's primary replica from another replica. Only stores
                on Ceph have several replicas. Sound data is never changed.
            replicas: how many times to repeat the audit on replicas chosen at random. If ``repair``
                is set, damage that is found there is repaired as well.
            rebuild_index: rebuild wrong indexes of tags.
            progress: called from time to time with the number of checked positions and the total.
        """
        checker = Checker(
            self._client.reader,
            orphans=orphans,
            repair=repair,
            replicas=replicas,
            rebuild_index=rebuild_index,
            progress=progress,
        )
        return Check(checker)

    async def close(self) -> None:
        """Wait for appends in flight and close this handle. The store stays open.

        It is safe to call this twice. Other calls on a closed handle raise StoreUnavailable.
        """
        await self._shared.close()
        await drive(self._client.io.close())

    def __repr__(self) -> str:
        return f"<zlog.aio.Log {self._client.layout}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
