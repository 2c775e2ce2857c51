"""The parts of one handle on a log, used by `zlog.Log` and `zlog.aio.Log`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from zlog._append.exactly_once import ExactlyOnce
from zlog._append.ordered import OrderedAppender
from zlog._append.reserved import Reserved
from zlog._base.codes import FillCode
from zlog._base.deadline import Deadline
from zlog._base.io import Io, deadline_of
from zlog._base.log_options import LogOptions
from zlog._base.mac import MAC_BYTES
from zlog._base.names import check_position, check_range
from zlog._base.options import entry_bytes_max_of
from zlog._base.sequencer import LogAddress
from zlog._base.settings import Budget, HandleOptions, HoleTimeout
from zlog._layout.layout import Layout
from zlog._lifecycle import create_log, find_log, find_or_create_log
from zlog._native.new_entries import (
    EntryLimit,
    NewEntry,
    tagged,
    tagged_each,
    tags_checked,
    with_tags,
)
from zlog._positions.positions import Positions
from zlog._read.cursors import Cursors
from zlog._read.items import no_entry
from zlog._read.read import Reader
from zlog._read.times import as_time, find_time
from zlog._trim.trim import trim, trim_to
from zlog.entry import Entry, Gap, GapKind
from zlog.errors import AlreadyWritten, Invalidated
from zlog.limits import ENTRY_BYTES_MAX
from zlog.view import OPEN_END, PLACED, EntryMac, Stripe, StripeFile, View

Tags = Iterable[str]
"""The tags of an entry: up to 64 strings, each of 1 to 128 bytes in UTF-8."""

attached: list[Callable[[LogClient], None]] = []
"""Functions that are called with each new client. Metrics add one when a program enables them."""


class LogClient:
    """Everything behind one handle on a log, over an Io, and the calls that need several parts."""

    def __init__(self, io: Io, view: View, options: HandleOptions) -> None:
        store = io.store
        address = LogAddress(store.pool, store.namespace, view.log, view.log_id, store.identity)
        self.io = io
        self.options = options
        self.layout = Layout(io, address, view, options.sequencer_timeout, options.key)
        self.budget = Budget(io, options, lambda: self.layout.view.options)
        self.deadline = self.budget.deadline
        self.limit = EntryLimit(0)
        self._adopted(view)
        self.layout.on_adopt = self._adopted
        self.positions = Positions(self.layout)
        self.writer = io.token(16)
        """The id of this handle's appends and fills. No other handle has the same id."""
        self.reader = Reader(self.positions, self.writer, self.budget)
        self.cursors = Cursors(self.layout)
        self.appender = OrderedAppender(
            self.layout, self.positions, self.writer, self.limit, self.reader
        )
        self.reserved = Reserved(self.reader, self.appender)
        self.exactly_once = ExactlyOnce(self.reader, self.limit)
        for attach in attached:
            attach(self)

    def _adopted(self, view: View) -> None:
        own = self.options.entry_bytes_max
        wanted = entry_bytes_max_of(view.options) if own is None else own
        mac = 0 if view.mac is None else MAC_BYTES
        self.limit.bytes_max = min(wanted, ENTRY_BYTES_MAX - mac)

    @classmethod
    async def open(
        cls,
        io: Io,
        name: str,
        options: HandleOptions,
        new: LogOptions | None = None,
        *,
        exclusive: bool = False,
    ) -> LogClient:
        """Open a log; see :meth:`zlog.Log.open`.

        Args:
            io: the Io of the handle.
            name: the log's name.
            options: the handle's options.
            new: the options of the log if it must be created; None if it must exist already.
            exclusive: whether to fail if the log exists; see :meth:`zlog.Log.create`.
        """
        deadline = deadline_of(io, options.timeout)
        if new is not None and options.key is not None:
            new = replace(new, mac=EntryMac(options.key.id))
        if new is None:
            view = await find_log(io, name, deadline)
        elif exclusive:
            view = await create_log(io, name, new, deadline)
        else:
            view = await find_or_create_log(io, name, new, deadline)
        return cls(io, view, options)

    async def read(self, position: int, deadline: Deadline) -> Entry:
        """Read one entry as it is now; see :meth:`zlog.Log.read`."""
        check_position(position)
        self.layout.macs.check_key()
        return await self._read(position, deadline)

    async def _read(self, position: int, deadline: Deadline) -> Entry:
        epoch = 0
        while (
            epoch != self.layout.view.epoch
        ):  # an entry that is confirmed in one epoch is confirmed in every later one
            confirmed = await self.positions.is_confirmed(position, deadline)
            epoch = self.layout.view.epoch
            found = await self.reader.read([position], deadline)
        if not confirmed:
            raise no_entry(Gap(position, position + 1, GapKind.UNWRITTEN), self.layout.view.log)
        if not isinstance(found[position], Entry):
            await self.reader.settle(found, HoleTimeout(self.budget, None), 0, (), deadline)
        slot = found[position]
        if isinstance(slot, Entry):
            return slot
        raise no_entry(slot, self.layout.view.log)

    async def find_time(self, when: datetime | float, deadline: Deadline) -> int:
        """Return the first position at or after a time; see :meth:`zlog.Log.find_time`."""
        moment = as_time(when)
        start = await self.positions.resolve("earliest", deadline)
        tail = await self.positions.tail(deadline)
        return await find_time(self.reader, start, tail, moment, deadline)

    async def fill(self, position: int, deadline: Deadline) -> None:
        """Fill a hole; see :meth:`zlog.Log.fill`."""
        await self.positions.check_handed_out("fill", position, deadline)
        if await self.reader.fill([position], FillCode.ASKED, deadline) is None:
            return
        with contextlib.suppress(Invalidated):  # another client has filled or trimmed it meanwhile
            await self._read(position, deadline)
            log = self.layout.view.log
            raise AlreadyWritten(f"position {position} of log {log!r} already holds an entry")

    async def trim(self, position: int, deadline: Deadline) -> None:
        """Trim one position; see :meth:`zlog.Log.trim`."""
        await self.positions.check_handed_out("trim", position, deadline)
        await trim(self.layout, [position], deadline)

    async def trim_to(self, position: int, deadline: Deadline, *, past_cursors: bool) -> None:
        """Trim everything below a position; see :meth:`zlog.Log.trim_to`."""
        check_position(position)
        await self.positions.check_reached("trim to", position, position, deadline)
        await trim_to(self.layout, position, deadline, past_cursors=past_cursors)

    async def stripes(self, start: int, end: int | None, deadline: Deadline) -> list[Stripe]:
        """Return all stripes in a range of positions; see :meth:`zlog.Log.stripes`."""
        check_range(start, end)
        await self.layout.refresh(deadline)
        last = OPEN_END if end is None else end
        return [stripe async for stripe in self.layout.stripes(start, last, deadline)]

    async def stripe_files(
        self, start: int, end: int | None, deadline: Deadline
    ) -> list[StripeFile]:
        """Return the files in a range of positions; see :meth:`zlog.Log.stripe_files`."""
        check_range(start, end)
        view = await self.layout.refresh(deadline)
        if not view.offloads:
            return []
        last = OPEN_END if end is None else end
        first = max(start, view.trim_point)
        found = await self.layout.head.offload_list(view.log_id, first, deadline, below=last)
        return [file for file in found if file.state >= PLACED and file.start < last]


def new_entries(
    entries: Iterable[bytes], tags: Tags = (), tags_each: Iterable[Tags] | None = None
) -> Sequence[NewEntry]:
    """Convert the arguments of ``append_many`` to a sequence of entries.

    Raises:
        InvalidTag: an entry has too many tags, or a tag is empty or too long.
        TypeError: ``entries`` is a single entry or is not iterable.
        ValueError: ``tags_each`` differs from ``entries`` in length or is combined with ``tags``.
    """
    entries = _entries(entries, "append_many")
    found = entries if isinstance(entries, Sequence) else [*entries]
    if tags_each is None:
        return tagged(found, tags)
    _check_tags(tags, tags_each)
    return tagged_each(found, [*tags_each])


def entry_stream(
    entries: Iterable[bytes], tags: Tags, tags_each: Iterable[Tags] | None
) -> Iterable[NewEntry]:
    """Yield the entries for ``append_once`` one by one, without reading ahead.

    Raises:
        InvalidTag, TypeError, ValueError: as :func:`new_entries`, at the call or during iteration.
    """
    entries = _entries(entries, "append_once")
    if tags_each is not None:
        _check_tags(tags, tags_each)
        pairs = zip(entries, tags_each, strict=True)
        return (with_tags(data, own) for data, own in pairs)
    checked = tags_checked(tags)
    return (with_tags(data, checked) for data in entries) if checked else entries


def _check_tags(tags: Tags, tags_each: Iterable[Tags]) -> None:
    if isinstance(tags_each, (str, bytes)):
        raise TypeError("each item of tags_each must be a collection of tags, not a string")
    if tags_checked(tags):
        raise ValueError("give either tags, which apply to all entries, or tags_each, but not both")


def _entries(entries: Iterable[bytes], method: str) -> Iterable[bytes]:
    if isinstance(entries, (bytes, bytearray, memoryview, str)) or not isinstance(
        entries, Iterable
    ):
        raise TypeError(f"{method} takes a list of bytes objects, not {type(entries).__name__!r}")
    return entries
