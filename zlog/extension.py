"""The API for code that builds on a log and works both with threads and with asyncio.

You write such code once, as ``async def`` functions over a :class:`LogPort`; :mod:`zlog.objects` is
an example. With a :class:`ThreadPort`, an await blocks the thread and never suspends, so
:func:`drive` runs a whole call in the caller's thread. With an :class:`AsyncioPort`, awaits suspend
as usual, and :func:`drive_aio` returns the coroutine for the caller to await.
docs/decisions/0002-logic-once.md gives the reasons.

Derive handles from :class:`ProcessBound`, so that a forked child cannot use them. Guard their state
with a :class:`Mutex`, so that a call from a signal handler raises :class:`zlog.ReentrantCall`
instead of waiting for the call that it interrupted.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import errno
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol

from zlog import aio
from zlog._append.producer_records import SequenceKey
from zlog._base.deadline import Deadline, Timeout
from zlog._base.options import OffloadAfter
from zlog._base.pieces import Batch, Filled, Lost, Trimmed
from zlog._base.process import ProcessBound
from zlog._base.refusals import from_code
from zlog._base.wanted import Wanted
from zlog._client import LogClient, new_entries
from zlog._io import drive
from zlog._io.aio import drive as drive_aio
from zlog._layout.offloaded import StripeFiles
from zlog._layout.segments import SegmentColumns
from zlog._layout.views import backoff
from zlog._native.mutex import Mutex, reentrant_call
from zlog._native.new_entries import EntryColumn, Tagged, tagged_each
from zlog._positions.positions import PositionSpec
from zlog._read.columns import Columns, column_reader
from zlog._read.items import no_entry
from zlog._read.iterate import ReadOptions, range_reader
from zlog._read.select import BackwardReader
from zlog._read.times import as_time
from zlog._transfer.offload import StripeOffload
from zlog.entry import Entry, Gap
from zlog.errors import CursorAhead
from zlog.sync.log import Log
from zlog.view import Stripe, StripeFile, View

__all__ = [
    "AsyncioPort",
    "Batch",
    "ColumnReader",
    "Deadline",
    "EntryColumn",
    "Event",
    "Filled",
    "ItemReader",
    "LogPort",
    "Lost",
    "Mutex",
    "NewEntry",
    "OffloadAfter",
    "PositionSpec",
    "ProcessBound",
    "SegmentColumns",
    "StripeFile",
    "StripeFiles",
    "StripeOffload",
    "Tagged",
    "ThreadPort",
    "Timeout",
    "Trimmed",
    "Wanted",
    "as_time",
    "drive",
    "drive_aio",
    "no_entry",
    "reentrant_call",
    "start_thread",
    "tagged_each",
]


NewEntry = bytes | Tagged
"""One entry to append: data, or data with tags."""


class Event(Protocol):
    """A flag that tasks or threads wait for. It is set once."""

    def set(self) -> None:
        """Wake all waiting callers."""

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait until the event is set. Returns False if ``seconds`` pass first."""


class ItemReader(Protocol):
    """Reads the entries and gaps of a range, one window at a time."""

    async def next(self) -> Sequence[Entry | Gap] | None:
        """Return the next window, which may be empty. Returns None at the end of the range."""


class ColumnReader(Protocol):
    """Reads entries as columns, starting at a position, and requests the next windows ahead."""

    @property
    def position(self) -> int:
        """The position after the last window that was returned."""

    async def next(self, tail: int) -> list[Columns]:
        """Return the next window of entries below ``tail``, which may be empty."""


class LogPort(abc.ABC):
    """A log's interface for code that works with threads as well as with asyncio.

    Each call uses the default timeout of the log's handle, and raises the errors of the
    :class:`zlog.Log` method with the same name.

    Attributes:
        lock: the lock that guards the code's state.
        caller: a function that returns the identity of the calling thread.
        wait_seconds: how long to wait for a caller that makes no progress; None means no limit.
    """

    lock: AbstractContextManager[Any]
    caller: Callable[[], object]
    wait_seconds: float | None

    def __init__(self, client: LogClient) -> None:
        """Wrap a handle's client. Programs create a :class:`ThreadPort` or :class:`AsyncioPort`."""
        self._client = client
        self.monotonic = client.io.monotonic
        self.sleep = client.io.sleep
        self.wall_clock_us = client.io.wall_clock_us
        self.random_bytes = client.io.token
        self.deadline = client.deadline

    @abc.abstractmethod
    async def append(
        self,
        data: bytes,
        tags: Sequence[str],
        unless: Sequence[Sequence[str]] = (),
        after: int | None = None,
    ) -> int:
        """Append an entry and return its position. Concurrent calls are sent together.

        With ``unless``, raise Conflict if an entry above ``after`` has all tags of a set.
        """

    @property
    def ordered(self) -> bool:
        """Whether the log is ordered by its object, so that appends can have conditions."""
        return self._client.layout.view.ordered

    @abc.abstractmethod
    def event(self) -> Event:
        """Return an event that is not set yet."""

    @abc.abstractmethod
    async def pause(self) -> None:
        """Let other tasks run."""

    @abc.abstractmethod
    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine to completion, concurrently with the caller."""

    async def backoff(self, attempt: int) -> None:
        """Sleep for a random time, whose limit doubles with each attempt, up to half a second."""
        await backoff(self._client.io, attempt)

    @property
    def log(self) -> str:
        """The log's name."""
        return self._client.layout.view.log

    @property
    def options(self) -> Mapping[str, str]:
        """The options of the newest view that this client knows."""
        return self._client.layout.view.options

    @property
    def trim_point(self) -> int:
        """The oldest position that is not trimmed, as far as this client knows."""
        return self._client.layout.view.trim_point

    @property
    def entry_bytes_max(self) -> int:
        """The maximum size of an entry that the handle appends, in bytes."""
        return self._client.limit.bytes_max

    async def refresh(self) -> None:
        """Read the newest view from the log's head object."""
        await self._client.layout.refresh(self.deadline())

    async def append_many(self, batch: Iterable[bytes], tags: Sequence[str]) -> Sequence[int]:
        """Append entries that all have the same tags. Returns their positions."""
        return await self._client.appender.append(new_entries(batch, tags), self.deadline())

    async def append_once(
        self, entries: Iterable[NewEntry], producer: str, sequence: int, *, in_order: bool = False
    ) -> int:
        """Append entries exactly once. Returns the number of entries that this call appended."""
        once, key = self._client.exactly_once, SequenceKey(producer, sequence, 0)
        return await once.append(entries, key, ..., in_order=in_order)

    async def complete_sequences(self, producer: str, before: int) -> None:
        """Declare a producer's sequence numbers below ``before`` complete."""
        await self._client.exactly_once.records.done(producer, before, self.deadline())

    async def tail(self) -> int:
        """Return the next position that will be granted. This read is linearizable."""
        return await self._client.positions.tail(self.deadline())

    async def wait(self, position: int, seconds: float) -> int | None:
        """Wait until the tail is above a position. Returns the tail, or None after ``seconds``."""
        deadline = self._client.budget.longer(seconds)
        return await self._client.positions.wait(position, seconds, deadline)

    async def resolve(self, position: PositionSpec) -> int:
        """Return a position for a cursor: a number, or that of ``"earliest"`` or ``"latest"``.

        Raises BeyondTail if a number is above the tail.
        """
        return await self._client.positions.resolve(position, self.deadline())

    async def check_reached(self, action: str, position: int) -> None:
        """Raise BeyondTail, with ``action`` in its message, if a position was not granted yet."""
        await self._client.positions.check_reached(action, position, position + 1, self.deadline())

    async def find_time(self, when: datetime | float) -> int:
        """Return the first position whose entry is not older than ``when``."""
        return await self._client.find_time(when, self.deadline())

    async def read(self, positions: Iterable[int]) -> Mapping[int, Entry | Gap]:
        """Return the entries and gaps at the given positions, without waiting for holes."""
        return await self._client.reader.read(sorted(positions), self.deadline())

    def items(self, tag: str | None = None, start: int = 0, end: int | None = None) -> ItemReader:
        """Return a reader of ``[start, end)``: of all entries, or of those with a tag.

        An ``end`` of None means the tail.
        """
        options = ReadOptions(tags=None if tag is None else (tag,))
        return range_reader(self._client.reader, start, end, options)

    async def stripes(self, start: int, end: int) -> Sequence[Stripe]:
        """Return the stripes that have positions of ``[start, end)``."""
        return await self._client.stripes(start, end, self.deadline())

    def newest(self, tag: str, end: int | None = None) -> ItemReader:
        """Return a reader of the entries with a tag, which starts at the newest one.

        Args:
            tag: the tag of the entries.
            end: return only entries below this position; None means all.
        """
        client, wanted = self._client, Wanted.of((tag,), "any")
        return BackwardReader(client.reader, wanted, 0, end, entries_max=1)

    def columns(self, start: int, tag: str | None = None) -> ColumnReader:
        """Return a reader of the entries from ``start`` on: all of them, or those with a tag."""
        tags = None if tag is None else (tag,)
        options = ReadOptions(tags=tags, with_tags=tag is None, passes_holes=False)
        return column_reader(self._client.reader, start, options)

    async def cursor(self, name: str) -> int | None:
        """Return the position of a cursor, or None if it does not exist."""
        state = await self._client.cursors.read(name, self.deadline())
        return None if state is None else state.position

    async def set_cursor(self, name: str, position: int) -> None:
        """Create a cursor, or move it forward or back."""
        await self._client.cursors.set(name, position, self.deadline())

    async def advance_cursor(self, name: str, position: int) -> None:
        """Create a cursor, or move it forward. A cursor that is already ahead is not changed."""
        await self._client.cursors.create(name, position, self.deadline())
        with contextlib.suppress(CursorAhead):
            await self._client.cursors.advance(name, position, self.deadline())

    @property
    def view(self) -> View:
        """The newest view that this client knows."""
        return self._client.layout.view

    def stripe_offload(self) -> StripeOffload:
        """Return the steps that move ended stripes into files."""
        return StripeOffload(self._client)

    async def trim_to(self, position: int) -> None:
        """Trim everything below a position. Raises HeldByCursor if a cursor is below it."""
        await self._client.trim_to(position, self.deadline(), past_cursors=False)


def start_thread(run: Callable[[], object], name: str) -> None:
    """Run a function in a daemon thread, which does not keep the process alive.

    Raises:
        StoreUnavailable: the system does not allow another thread.
    """
    try:
        threading.Thread(target=run, name=name, daemon=True).start()
    except RuntimeError:
        raise from_code(-errno.EAGAIN, f"can't start the thread {name}") from None


class _ThreadEvent:
    def __init__(self) -> None:
        self._event = threading.Event()
        self.set = self._event.set

    async def wait(self, seconds: float | None = None) -> bool:
        return self._event.wait(seconds)


class ThreadPort(LogPort):
    """A port to a :class:`zlog.Log`. Its awaits block."""

    def __init__(self, log: Log) -> None:
        """Wrap a log."""
        super().__init__(log._client)
        self.lock = Mutex(reentrant=True)
        self.caller = threading.get_ident
        self.wait_seconds = self._client.options.timeout
        self._log = log

    async def append(
        self,
        data: bytes,
        tags: Sequence[str],
        unless: Sequence[Sequence[str]] = (),
        after: int | None = None,
    ) -> int:
        """See :meth:`LogPort.append`."""
        return self._log.append(data, tags=tags, unless=unless, after=after)

    def event(self) -> Event:
        """See :meth:`LogPort.event`."""
        return _ThreadEvent()

    async def pause(self) -> None:
        """See :meth:`LogPort.pause`."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """See :meth:`LogPort.spawn`. The thread does not keep the process alive."""
        start_thread(lambda: drive(work), "zlog.extension")


class _LoopEvent:
    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.set = self._event.set

    async def wait(self, seconds: float | None = None) -> bool:
        if seconds is None:
            return await self._event.wait()
        with contextlib.suppress(asyncio.TimeoutError):
            return await asyncio.wait_for(self._event.wait(), seconds)
        return False


class AsyncioPort(LogPort):
    """A port to a :class:`zlog.aio.Log`. Its awaits suspend."""

    def __init__(self, log: aio.Log) -> None:
        """Wrap a log."""
        super().__init__(log._client)
        self.lock = contextlib.nullcontext()
        self.caller = object  # a task, unlike a thread, never waits for itself
        self.wait_seconds = None  # every task can run while another one waits
        self._log = log
        self._tasks: set[asyncio.Task[None]] = set()

    async def append(
        self,
        data: bytes,
        tags: Sequence[str],
        unless: Sequence[Sequence[str]] = (),
        after: int | None = None,
    ) -> int:
        """See :meth:`LogPort.append`."""
        return await self._log.append(data, tags=tags, unless=unless, after=after)

    def event(self) -> Event:
        """See :meth:`LogPort.event`."""
        return _LoopEvent()

    async def pause(self) -> None:
        """See :meth:`LogPort.pause`."""
        await asyncio.sleep(0)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """See :meth:`LogPort.spawn`. The coroutine runs as a task of the running loop."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
