"""Operations on a log, with the order in which they began and ended."""

from __future__ import annotations

import enum
import math
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass

from zlog.entry import Entry, Gap, GapKind


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
    TAKE = "take"
    """Makes the log exclusive, with a new writer."""
    RELEASE = "release"
    """Opens an exclusive log to all again."""


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
    FENCED = "fenced"
    """Of an exclusive writer: it is the log's no more. What was handed in may have taken effect."""


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
            was; of ``trim_to`` the first position that is kept; of ``take`` where the entries
            ended. None while it is not known.
        entry: what was appended, or read. With tags it is another one than without.
        found: why a read found no entry; None: it found one.
        epochs: of an append, the epochs of its handle's view before and after; where its position
            was reserved, before and after that.
        delivery: of an entry that is delivered, source, batch and part. An attempt's entries have
            the same beginning, and numbers in the attempt's order.
        writer: of ``take`` the exclusive writer, by id, that has the log then; of ``append`` and
            ``release`` that which was asked. One's appends have numbers in the order in which
            they were handed in.
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
    writer: str | None = None
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
        if self.writer is not None:
            what += f" by writer {self.writer[:8]}"
        if self.result is not Result.OK:
            what += f": {self.result.value}"
        return f"{what} ({self.error})" if self.error else what


def _short(entry: bytes) -> str:
    return repr(entry if len(entry) <= 40 else entry[:37] + b"...")


def told(data: bytes, tags: Iterable[str]) -> bytes:
    """Return what a history has for an entry: its data, with its tags behind it if it has any."""
    return b" #".join([bytes(data), *sorted(tag.encode() for tag in set(tags))])


class Recording:
    """Operations, and the order in which they began and ended; see :class:`History`."""

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
        writer: str | None = None,
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
            writer=writer,
            seconds=self._clock() if self._clock else 0.0,
        )
        self.operations.append(operation)
        return operation

    def returns(self, operations: Iterable[Operation], result: Result, error: str = "") -> None:
        """Note that operations end, all at the same event."""
        now = self.event()
        for operation in operations:
            operation.returned, operation.result, operation.error = now, result, error


async def scan(
    history: Recording,
    process: str,
    items: AsyncIterator[Entry | Gap],
    start: int | None = None,
    end: int | None = None,
) -> AsyncIterator[Entry | Gap]:
    """Note what a range holds, each position as an operation of its own.

    Args:
        history: where it is noted, and that positions are passed over.
        process: who reads.
        items: what it reads.
        start: where that must begin; None: anywhere.
        end: where that must end if there is any; None: anywhere.
    """
    # Windows are read ahead: what comes late may have been looked at in the beginning.
    began = history.event()
    expected = start
    async for item in items:
        if expected is not None and item.position != expected:
            history.skips.append(
                f"{process} read from {start} on: after position {expected - 1} came"
                f" {item.position}"
            )
        expected = item.end
        yield _note(history, process, item, began)
    if end is not None and expected not in (end, None):
        history.skips.append(f"{process} read up to {end}: after position {expected} came nothing")


def _note(history: Recording, process: str, item: Entry | Gap, began: int) -> Entry | Gap:
    operations = [
        history.invoke(process, Action.READ, position=position, invoked=began)
        for position in range(item.position, item.end)
    ]
    for operation in operations:
        if isinstance(item, Entry):
            operation.entry = told(item.data, item.tags)
        else:
            operation.found = item.kind
    history.returns(operations, Result.OK)
    return item
