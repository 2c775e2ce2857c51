"""What was asked of a log and what it answered, kept for :func:`zlog.testing.check`."""

from __future__ import annotations

import contextlib
import enum
import math
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from zlog._base.deadline import Timeout
from zlog.aio import Log
from zlog.entry import Entry, Gap, GapKind
from zlog.errors import (
    AlreadyWritten,
    BeyondTail,
    DeliverySuperseded,
    EntryTooLarge,
    Invalidated,
    NotWritten,
)
from zlog.testing._process import PROCESS


class Action(enum.Enum):
    """What an operation does."""

    APPEND = "append"
    READ = "read"
    TAIL = "tail"
    FILL = "fill"
    TRIM = "trim"
    TRIM_TO = "trim_to"
    DELIVER = "deliver"
    """One entry, in one attempt at a delivery; no other operation has the same beginning."""


class Result(enum.Enum):
    """How an operation ended."""

    PENDING = "pending"
    """It has not returned, and its process may be gone: it may take effect at any time."""
    OK = "ok"
    FAILED = "failed"
    """With an error or a time-out: it may have taken effect, or do so later."""
    REFUSED = "refused"
    """With an error that says that it had no effect."""
    WRITTEN = "written"
    """Of a fill: an entry is there."""
    SUPERSEDED = "superseded"
    """Of a delivery: another attempt has begun, or its batch is done."""


@dataclass(slots=True, eq=False)
class Operation:
    """One operation on the log, on one position.

    Attributes:
        number: counts the history's operations from 0.
        process: who asked.
        action: for what.
        invoked: when it began: a number that is higher than those of all events before.
        returned: when it ended, by the same count; infinite while it has not.
        result: how.
        position: where an append was acknowledged, what was read, filled or trimmed, what a tail
            was; of ``trim_to`` the first position that is kept. None while it is not known.
        entry: what was appended, or read.
        found: why a read found no entry; None: it found one.
        epochs: of an append, the epochs of its handle's view before and after; where its position
            was reserved, before and after that.
        delivery: of an entry that is delivered, source, batch and part. An attempt's entries have
            the same beginning, and numbers in the attempt's order.
        error: of one that failed, what was said.
        seconds: when it began, on the clock of the history.
    """

    number: int
    process: str
    action: Action
    invoked: float
    returned: float = math.inf
    result: Result = Result.PENDING
    position: int | None = None
    entry: bytes | None = None
    found: GapKind | None = None
    epochs: tuple[int, int] | None = None
    delivery: tuple[str, int, int] | None = None
    error: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        what = f"#{self.number} [{self.invoked:g}..{self.returned:g}] {self.process}:"
        what += f" {self.action.value}"
        if self.entry is not None:
            what += f" {_short(self.entry)}"
        if self.position is not None:
            what += f" at {self.position}" if self.action is not Action.TAIL else ""
        if self.action is Action.TAIL and self.position is not None:
            what += f" is {self.position}"
        if self.found is not None:
            what += f" found {self.found.value}"
        if self.epochs is not None:
            what += f" in epoch {self.epochs[0]}" + (
                f" to {self.epochs[1]}" if self.epochs[1] != self.epochs[0] else ""
            )
        if self.delivery is not None:
            what += " for {} {}.{}".format(*self.delivery)
        if self.result is not Result.OK:
            what += f": {self.result.value}"
        return f"{what} ({self.error})" if self.error else what


def _short(entry: bytes) -> str:
    return repr(entry if len(entry) <= 40 else entry[:37] + b"...")


class History:
    """All operations on one log, with the order in which they began and ended.

    Every append needs an entry that no other append has: it is what tells them apart. So does every
    entry of a delivery, which has it in each attempt.

    Args:
        clock: tells the seconds that messages show; None shows 0.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self.operations: list[Operation] = []
        self.skips: list[str] = []
        """Where a range was read and positions did not follow each other."""
        self.healed = math.inf
        """Operations that began later than this event must succeed: all faults were over."""
        self._clock = clock
        self._events = 0

    def event(self) -> int:
        """Count one event, and return its number."""
        self._events += 1
        return self._events

    def heal(self) -> None:
        """Note that no fault comes any more: every operation from now on must succeed."""
        self.healed = self.event()

    def invoke(
        self,
        process: str,
        action: Action,
        *,
        position: int | None = None,
        entry: bytes | None = None,
        delivery: tuple[str, int, int] | None = None,
        invoked: float | None = None,
    ) -> Operation:
        """Note that an operation begins, now or at an earlier event."""
        operation = Operation(
            len(self.operations),
            process,
            action,
            self.event() if invoked is None else invoked,
            position=position,
            entry=entry,
            delivery=delivery,
            seconds=self._clock() if self._clock else 0.0,
        )
        self.operations.append(operation)
        return operation

    def returns(self, operations: Iterable[Operation], result: Result, error: str = "") -> None:
        """Note that operations end, all at the same event."""
        now = self.event()
        for operation in operations:
            operation.returned, operation.result, operation.error = now, result, error

    def watch(self, log: Log, process: str | None = None) -> RecordedLog:
        """Return ``log`` with everything that goes through it noted here."""
        running = PROCESS.get()
        name = process or (running.name if running else "main")
        return RecordedLog(log, self, name)

    def digest(self) -> str:
        """Return a number for all that happened: equal histories have equal ones."""
        content = "\n".join(map(str, self.operations))
        return sha256(content.encode()).hexdigest()[:16]


def _kind_of(error: NotWritten | Invalidated) -> GapKind:
    if isinstance(error, NotWritten):
        return GapKind.UNWRITTEN
    return error.gap.kind if error.gap else GapKind.TRIMMED


_NO_EFFECT = (BeyondTail, EntryTooLarge, TypeError, ValueError)


class RecordedLog:
    """A :class:`zlog.aio.Log` whose calls go into a history. Its methods are the log's."""

    def __init__(self, log: Log, history: History, process: str) -> None:
        self.log = log
        self.process = process
        self._history = history
        self._reserved: dict[int, tuple[int, tuple[int, int]]] = {}
        """When each position was asked for, and the epochs before and after."""

    async def append(self, data: bytes, *, timeout: Timeout = ...) -> int:
        """See :meth:`zlog.Log.append`."""
        with self._operation(Action.APPEND, entry=data) as operation:
            before = self.log.view.epoch
            operation.position = await self.log.append(data, timeout=timeout)
            operation.epochs = before, self.log.view.epoch
        return operation.position

    async def append_many(self, entries: Sequence[bytes], *, timeout: Timeout = ...) -> list[int]:
        """See :meth:`zlog.Log.append_many`. Each entry is an operation of its own."""
        began = self._history.event()
        operations = [
            self._history.invoke(self.process, Action.APPEND, entry=entry, invoked=began)
            for entry in entries
        ]
        before = self.log.view.epoch
        positions: Sequence[int | None]
        try:
            positions = await self.log.append_many(entries, timeout=timeout)
        except Exception as error:
            positions = getattr(error, "positions", None) or [None] * len(entries)
            self._acknowledge(operations, positions, before)
            missing = [each for each in operations if each.position is None]
            self._failed(missing, error)
            raise
        self._acknowledge(operations, positions, before)
        return [position for position in positions if position is not None]

    async def reserve(self, count: int = 1, *, timeout: Timeout = ...) -> range:
        """See :meth:`zlog.Log.reserve`."""
        began, before = self._history.event(), self.log.view.epoch
        reserved = await self.log.reserve(count, timeout=timeout)
        self._reserved.update(dict.fromkeys(reserved, (began, (before, self.log.view.epoch))))
        return reserved

    async def write(self, position: int, data: bytes, *, timeout: Timeout = ...) -> None:
        """See :meth:`zlog.Log.write`. An append, which began when its position was reserved."""
        began, epochs = self._reserved.pop(position, (None, None))
        with self._operation(Action.APPEND, entry=data, invoked=began) as operation:
            try:
                await self.log.write(position, data, timeout=timeout)
            except (AlreadyWritten, Invalidated) as error:
                # What was trimmed may have been there before.
                if isinstance(error, AlreadyWritten) or _kind_of(error) is GapKind.FILLED:
                    self._history.returns([operation], Result.REFUSED, type(error).__name__)
                raise
            operation.position, operation.epochs = position, epochs

    async def deliver(
        self,
        entries: Iterable[bytes],
        *,
        source: str,
        batch: int,
        part: int = 0,
        timeout: Timeout = ...,
    ) -> int:
        """See :meth:`zlog.Log.deliver`. Each entry is an operation of its own.

        The entries are taken all at once, in the beginning.
        """
        entries = list(entries)
        began = self._history.event()
        operations = [
            self._history.invoke(
                self.process,
                Action.DELIVER,
                entry=entry,
                delivery=(source, batch, part),
                invoked=began,
            )
            for entry in entries
        ]
        try:
            appended = await self.log.deliver(
                entries, source=source, batch=batch, part=part, timeout=timeout
            )
        except DeliverySuperseded as error:
            self._history.returns(operations, Result.SUPERSEDED, str(error))
            raise
        except Exception as error:  # any error: some may be in the log
            self._history.returns(operations, Result.FAILED, f"{type(error).__name__}: {error}")
            raise
        self._history.returns(operations, Result.OK)
        return appended

    async def read(self, position: int, *, timeout: Timeout = ...) -> Entry:
        """See :meth:`zlog.Log.read`."""
        with self._operation(Action.READ, position=position) as operation:
            try:
                entry = await self.log.read(position, timeout=timeout)
            except (NotWritten, Invalidated) as error:
                operation.found = _kind_of(error)
                self._history.returns([operation], Result.OK)
                raise
            operation.entry = entry.data
        return entry

    async def read_range(
        self,
        start: int = 0,
        end: int | None = None,
        *,
        hole_timeout: Timeout = ...,
    ) -> AsyncIterator[Entry | Gap]:
        """See :meth:`zlog.Log.read_range`. Each position is an operation of its own."""
        async for item in self._scan(
            self.log.read_range(start, end, hole_timeout=hole_timeout), start
        ):
            yield item

    async def follow(
        self, start: int = 0, *, hole_timeout: Timeout = ...
    ) -> AsyncIterator[Entry | Gap]:
        """See :meth:`zlog.Log.follow`. Each position is an operation of its own."""
        async for item in self._scan(self.log.follow(start, hole_timeout=hole_timeout), start):
            yield item

    async def tail(self, *, timeout: Timeout = ...) -> int:
        """See :meth:`zlog.Log.tail`: the checked one."""
        with self._operation(Action.TAIL) as operation:
            operation.position = await self.log.tail(timeout=timeout)
        return operation.position

    async def fill(self, position: int, *, timeout: Timeout = ...) -> None:
        """See :meth:`zlog.Log.fill`."""
        with self._operation(Action.FILL, position=position) as operation:
            try:
                await self.log.fill(position, timeout=timeout)
            except AlreadyWritten:
                self._history.returns([operation], Result.WRITTEN)
                raise

    async def trim(self, position: int, *, timeout: Timeout = ...) -> None:
        """See :meth:`zlog.Log.trim`."""
        with self._operation(Action.TRIM, position=position):
            await self.log.trim(position, timeout=timeout)

    async def trim_to(self, position: int, *, timeout: Timeout = ...) -> None:
        """See :meth:`zlog.Log.trim_to`."""
        with self._operation(Action.TRIM_TO, position=position):
            await self.log.trim_to(position, timeout=timeout)

    @contextlib.contextmanager
    def _operation(
        self,
        action: Action,
        *,
        position: int | None = None,
        entry: bytes | None = None,
        invoked: float | None = None,
    ) -> Iterator[Operation]:
        """Note an operation's beginning and its end, unless that is noted inside."""
        operation = self._history.invoke(
            self.process, action, position=position, entry=entry, invoked=invoked
        )
        try:
            yield operation
        except Exception as error:
            if operation.result is Result.PENDING:
                self._failed([operation], error)
            raise
        self._history.returns([operation], Result.OK)

    def _acknowledge(
        self, operations: Sequence[Operation], positions: Sequence[int | None], epoch: int
    ) -> None:
        for operation, position in zip(operations, positions, strict=True):
            operation.position = position
            operation.epochs = epoch, self.log.view.epoch
        done = [each for each in operations if each.position is not None]
        self._history.returns(done, Result.OK)

    def _failed(self, operations: Sequence[Operation], error: Exception) -> None:
        result = Result.REFUSED if isinstance(error, _NO_EFFECT) else Result.FAILED
        self._history.returns(operations, result, f"{type(error).__name__}: {error}")

    async def _scan(
        self, items: AsyncIterator[Entry | Gap], start: int
    ) -> AsyncIterator[Entry | Gap]:
        # Windows are read ahead: what comes late may have been looked at in the beginning.
        began = self._history.event()
        expected = start
        async for item in items:
            if item.position != expected:
                self._history.skips.append(
                    f"{self.process} read from {start} on: after position {expected - 1} came"
                    f" {item.position}"
                )
            expected = item.end
            yield self._note(item, began)

    def _note(self, item: Entry | Gap, began: int) -> Entry | Gap:
        operations = [
            self._history.invoke(self.process, Action.READ, position=position, invoked=began)
            for position in range(item.position, item.end)
        ]
        for operation in operations:
            if isinstance(item, Entry):
                operation.entry = item.data
            else:
                operation.found = item.kind
        self._history.returns(operations, Result.OK)
        return item
