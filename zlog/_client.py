"""What a log can do, written once; `zlog.Log` and `zlog.aio.Log` are its two faces."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from zlog._append.append import Appender
from zlog._append.deliveries import Deliveries
from zlog._append.positions import Positions
from zlog._append.reserved import Reserved
from zlog._base.deadline import Deadline, Timeout, check_seconds, own_or
from zlog._base.io import Call, Io, deadline_of
from zlog._base.names import check_int, check_position
from zlog._base.protocol import Code, FillCode
from zlog._base.sequencer import LogAddress
from zlog._layout.admin import NewLog, create_log, find_log, find_or_create_log
from zlog._layout.layout import Layout
from zlog._layout.options import MIRROR_OF
from zlog._layout.reconfigure import reconfigure, roll
from zlog._layout.trim import trim_to
from zlog._native import messages
from zlog._read.cursors import Cursors, PositionSpec
from zlog._read.items import no_entry
from zlog._read.read import Reader, WindowItems, WindowRead
from zlog._read.times import as_time, find_time
from zlog._transfer.promote import promote
from zlog.entry import Entry
from zlog.errors import (
    AlreadyWritten,
    BeyondTail,
)
from zlog.limits import (
    ENTRY_BYTES_MAX,
    ENTRY_BYTES_MAX_DEFAULT,
    HOLE_TIMEOUT_SECONDS,
    SEQUENCER_TIMEOUT_SECONDS,
    TIMEOUT_SECONDS,
)
from zlog.view import OPEN_END, Stripe, View

_WAIT_SECONDS = 5.0
"""How long one wait for a new entry lasts at the sequencer, before it is asked again."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How one handle on a log behaves.

    Attributes:
        timeout: budget of a whole call in seconds, unless the call has its own; None: no limit.
        hole_timeout: seconds to wait for a hole before filling it; None: never fill.
        sequencer_timeout: seconds that a sequencer may be out of reach before writers bring in a
            view without it.
        entry_bytes_max: bytes of one entry, at most; 1 to 16 MiB.
    """

    timeout: float | None = TIMEOUT_SECONDS
    hole_timeout: float | None = HOLE_TIMEOUT_SECONDS
    sequencer_timeout: float = SEQUENCER_TIMEOUT_SECONDS
    entry_bytes_max: int = ENTRY_BYTES_MAX_DEFAULT

    def __post_init__(self) -> None:
        check_seconds("timeout", self.timeout)
        check_seconds("hole_timeout", self.hole_timeout)
        check_seconds("sequencer_timeout", self.sequencer_timeout, optional=False)
        if not hasattr(self.entry_bytes_max, "__index__"):
            raise TypeError(f"entry_bytes_max is an int, not {self.entry_bytes_max!r}")
        if not 0 < self.entry_bytes_max <= ENTRY_BYTES_MAX:
            raise ValueError(
                f"entry_bytes_max is 1 to {ENTRY_BYTES_MAX} bytes, not {self.entry_bytes_max}"
            )


class LogStat(NamedTuple):
    """A log at a glance, or a range of its positions. Trimmed entries are not counted.

    Attributes:
        name: the log's name.
        log_id: tells it from other logs that had its name.
        epoch: of the newest view.
        tail: the next position to be handed out.
        trim_point: positions below it are trimmed.
        width: stripe objects of the live stripe.
        stripes: stripes that hold positions of the range and are not trimmed as a whole.
        objects: stripe objects of these.
        sequencer: its address; empty when writers find the tail themselves.
        entries: entries of these stripes that can be read.
        bytes: their data together.
    """

    name: str
    log_id: int
    epoch: int
    tail: int
    trim_point: int
    width: int
    stripes: int
    objects: int
    sequencer: str
    entries: int
    bytes: int


class LogClient:
    """One handle on one log, over an Io."""

    def __init__(self, io: Io, view: View, settings: Settings) -> None:
        address = LogAddress(io.store.pool, io.store.namespace, view.log, view.log_id)
        self.io = io
        self.settings = settings
        self.layout = Layout(io, address, view, settings.sequencer_timeout)
        self.positions = Positions(self.layout)
        self.writer = io.token(16)
        """Identifies this handle's appends and fills; no other handle or process has it."""
        self.reader = Reader(self.layout, self.writer)
        self.cursors = Cursors(io, address)
        self.appender = Appender(self.layout, self.positions, self.writer, settings.entry_bytes_max)
        self.reserved = Reserved(self.layout, self.positions, self.reader, self.appender)
        self.deliveries = Deliveries(self)

    @classmethod
    async def create(cls, io: Io, name: str, new: NewLog, settings: Settings) -> LogClient:
        """Make a log and open it; see :meth:`zlog.Log.create`."""
        deadline = deadline_of(io, settings.timeout)
        return cls(io, await create_log(io, name, new, deadline), settings)

    @classmethod
    async def open(
        cls, io: Io, name: str, settings: Settings, new: NewLog | None = None
    ) -> LogClient:
        """Open a log, or make it if it is not there and may be made; see :meth:`zlog.Log.open`."""
        deadline = deadline_of(io, settings.timeout)
        if new is None:
            view = await find_log(io, name, deadline)
        else:
            view = await find_or_create_log(io, name, new, deadline)
        return cls(io, view, settings)

    def __str__(self) -> str:
        return f"{self.layout.view.log!r} in {self.io.store.url}"

    def deadline(self, timeout: Timeout = ...) -> Deadline:
        """Start the budget of one call."""
        return deadline_of(self.io, own_or(timeout, self.settings.timeout))

    async def append(self, entries: Sequence[bytes], timeout: Timeout) -> list[int]:
        """Append entries; see :meth:`zlog.Log.append_many`."""
        return await self.appender.append(entries, self.deadline(timeout))

    async def reserve(self, count: int, timeout: Timeout) -> range:
        """Take positions to write to later; see :meth:`zlog.Log.reserve`."""
        return await self.reserved.reserve(count, self.deadline(timeout))

    async def write(self, position: int, data: bytes, timeout: Timeout) -> None:
        """Write at a position that was reserved; see :meth:`zlog.Log.write`."""
        await self.reserved.write(position, data, self.deadline(timeout))

    async def read(self, position: int, timeout: Timeout) -> Entry:
        """Read one entry as it is now; see :meth:`zlog.Log.read`."""
        check_position(position)
        deadline = self.deadline(timeout)
        found = await self.reader.read([position], deadline)
        await self.reader.settle(found, None, self.positions.tail, deadline)
        slot = found[position]
        if isinstance(slot, Entry):
            return slot
        raise no_entry(slot, self.layout.view.log)

    def hole_timeout(self, given: Timeout) -> float | None:
        """Return the hole time-out that a call was given, or the handle's own."""
        wanted = own_or(given, self.settings.hole_timeout)
        check_seconds("hole_timeout", wanted)
        return wanted

    async def finish_window(self, read: WindowRead, hole_timeout: float | None) -> WindowItems:
        """Bring in a window of positions that is being read.

        Those that turn out to lie at or beyond the checked tail are left unwritten.
        """
        deadline = self.window_deadline(hole_timeout)
        return await self.reader.finish(read, hole_timeout, self.positions.tail, deadline)

    def window_deadline(self, hole_timeout: float | None) -> Deadline:
        """Start the budget of bringing in one window, in which a hole may have to be waited for."""
        budget = self.settings.timeout
        if budget is not None and hole_timeout is not None:
            budget += hole_timeout
        return deadline_of(self.io, budget)

    async def wait(self, position: int) -> int | None:
        """Wait some seconds for the tail to pass ``position``. Returns the tail, or None."""
        budget = self.settings.timeout
        deadline = deadline_of(self.io, None if budget is None else budget + _WAIT_SECONDS)
        return await self.positions.wait(position, _WAIT_SECONDS, deadline)

    async def tail(self, timeout: Timeout = ..., *, checked: bool = True) -> int:
        """Return the tail; see :meth:`zlog.Log.tail`."""
        return await self.positions.tail(self.deadline(timeout), checked=checked)

    async def earliest(self, timeout: Timeout) -> int:
        """Return the first position that is not trimmed; see :meth:`zlog.Log.earliest`."""
        return await self.resolve("earliest", self.deadline(timeout))

    async def find_time(self, when: datetime | float, timeout: Timeout) -> int:
        """Return the first position that is not older; see :meth:`zlog.Log.find_time`."""
        deadline = self.deadline(timeout)
        moment = as_time(when)
        start = await self.resolve("earliest", deadline)
        tail = await self.positions.tail(deadline)
        return await find_time(self.reader, start, tail, moment, deadline)

    async def resolve(self, spec: PositionSpec, deadline: Deadline) -> int:
        """Return where a reader begins that says so.

        Raises:
            BeyondTail: a position that has not been handed out yet.
        """
        if spec == "earliest":
            return (await self.layout.refresh(deadline)).trim_point
        if spec == "latest":
            return await self.positions.tail(deadline)
        await self._check_below_tail("begin at", spec, 0, deadline)
        return spec

    async def fill(self, position: int, timeout: Timeout) -> None:
        """Fill a hole; see :meth:`zlog.Log.fill`."""
        deadline = self.deadline(timeout)
        await self._check_below_tail("fill", position, 1, deadline)
        written = await self.reader.fill([position], FillCode.ASKED, deadline)
        if written is not None:
            raise AlreadyWritten(
                f"position {position} of log {self.layout.view.log!r} holds an entry"
            )

    async def trim(self, position: int, timeout: Timeout) -> None:
        """Trim one position; see :meth:`zlog.Log.trim`."""
        deadline = self.deadline(timeout)
        await self._check_below_tail("trim", position, 1, deadline)
        await self.reader.trim([position], deadline)

    async def trim_to(self, position: int, timeout: Timeout, *, past_cursors: bool = False) -> None:
        """Trim everything below a position; see :meth:`zlog.Log.trim_to`."""
        deadline = self.deadline(timeout)
        await self._check_below_tail("trim to", position, 0, deadline)
        await trim_to(self.layout, position, deadline, past_cursors=past_cursors)

    async def stripes(self, start: int, end: int | None, timeout: Timeout) -> list[Stripe]:
        """Return all stripes of a range of positions; see :meth:`zlog.Log.stripes`."""
        check_range(start, end)
        deadline = self.deadline(timeout)
        await self.layout.refresh(deadline)
        last = OPEN_END if end is None else end
        return [stripe async for stripe in self.layout.stripes(start, last, deadline)]

    async def stat(self, start: int, end: int | None, timeout: Timeout) -> LogStat:
        """Return the log at a glance; see :meth:`zlog.Log.stat`."""
        check_range(start, end)
        deadline = self.deadline(timeout)
        tail = await self.positions.tail(deadline)
        layout = self.layout
        await layout.refresh(deadline)
        stripes = objects = entries = size = 0
        async for stripe in layout.stripes(start, OPEN_END if end is None else end, deadline):
            stripes += 1
            objects += stripe.width
            for object_stat in await self.object_stats(stripe, deadline):
                entries += object_stat.entries
                size += object_stat.bytes
        view = layout.view
        return LogStat(
            name=view.log,
            log_id=view.log_id,
            epoch=view.epoch,
            tail=tail,
            trim_point=view.trim_point,
            width=view.live_stripe.width,
            stripes=stripes,
            objects=objects,
            sequencer=view.sequencer,
            entries=entries,
            bytes=size,
        )

    async def object_stats(self, stripe: Stripe, deadline: Deadline) -> list[messages.StatReply]:
        """Return what the objects of a stripe hold, without those that are missing."""

        def calls(view: View) -> list[Call]:
            request = messages.stat(view.epoch)
            return [Call(ref.name, "stat", request) for ref in self.layout.objects(view, stripe)]

        view, replies = await self.layout.guarded(calls, deadline)
        for reply in replies:
            reply.check(f"stat of log {view.log!r}", -errno.ENOENT)
        return [messages.stat_reply(each.payload) for each in replies if each.code == Code.OK]

    async def reconfigure(
        self, width: int | None, options: Mapping[str, str | None], timeout: Timeout
    ) -> View:
        """Change width or options; see :meth:`zlog.Log.reconfigure`."""
        if MIRROR_OF in options:
            raise ValueError(f"option {MIRROR_OF!r} is zlog's own: `promote` ends a mirror")
        return await reconfigure(self.layout, width, options, self.deadline(timeout))

    async def roll(self, timeout: Timeout) -> View:
        """Start a new stripe; see :meth:`zlog.Log.roll`."""
        return await roll(self.layout, self.deadline(timeout))

    async def promote(self, timeout: Timeout) -> None:
        """Make a mirror a log of its own; see :meth:`zlog.Log.promote`."""
        await promote(self, timeout)

    async def views(self, timeout: Timeout) -> list[View]:
        """Return the views of the last 128 epochs, oldest first."""
        return await self.layout.head.views(self.deadline(timeout))

    async def _check_below_tail(
        self, verb: str, position: int, count: int, deadline: Deadline
    ) -> None:
        check_position(position)
        tail = await self.positions.tail(deadline)
        if position + count > tail:
            raise self.beyond_tail(f"{verb} {position}", tail)

    def beyond_tail(self, what: str, tail: int) -> BeyondTail:
        """The error that says that something reaches beyond the tail."""
        return BeyondTail(f"can't {what}: the tail of log {self.layout.view.log!r} is {tail}")


def new_log(
    create: bool,
    width: int | None,
    stripe_bytes: int | None,
    stripe_records: int | None,
    options: Mapping[str, str] | None,
) -> NewLog | None:
    """Return how ``open`` may make a log; None: it may not.

    Raises:
        ValueError: something is invalid, or of no use without ``create``.
    """
    if create:
        return NewLog.of(width, stripe_bytes, stripe_records, options)
    if any(each is not None for each in (width, stripe_bytes, stripe_records, options)):
        raise ValueError(
            "width, stripe_bytes, stripe_records and options say how to make a log: open it with"
            " create=True, or change one that is there with reconfigure()"
        )
    return None


def check_range(start: int, end: int | None) -> None:
    """Raise TypeError or ValueError unless a range can begin and end there (None: at the tail)."""
    check_position(start)
    if end is not None:
        check_int(end)


def entry_list(entries: Iterable[bytes]) -> Sequence[bytes]:
    """Return what ``append_many`` was given as a sequence.

    Raises:
        TypeError: it is no collection of entries, but perhaps a single one.
    """
    entries = entry_iterable(entries, "append_many")
    return entries if isinstance(entries, Sequence) else [*entries]


def entry_iterable(entries: Iterable[bytes], method: str = "deliver") -> Iterable[bytes]:
    """Return what a method was given that takes many entries.

    Raises:
        TypeError: it is no collection of entries, but perhaps a single one.
    """
    if isinstance(entries, (bytes, bytearray, memoryview, str)) or not isinstance(
        entries, Iterable
    ):
        raise TypeError(
            f"{method} takes a list of entries, each of bytes, not {type(entries).__name__!r}"
        )
    return entries
