"""Operations on a log, with the order in which they began and ended."""

from __future__ import annotations

import enum
import math
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field

from zlog._append.conditions import Condition
from zlog._base.wanted import Wanted
from zlog.entry import Entry, Gap, GapKind


class Action(enum.Enum):
    """What an operation does."""

    APPEND = "append"
    READ = "read"
    SKIP = "skip"
    """A reader by tags tells nothing of some positions in a row, and goes on."""
    TAIL = "tail"
    FILL = "fill"
    TRIM = "trim"
    TRIM_TO = "trim_to"
    COMPACT = "compact"
    """From now on any client may trim entries of whose tags all have newer ones."""
    APPEND_ONCE = "append_once"
    """One entry of an exactly-once append, in one attempt; no other one begins at this event."""
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
    """Of an exactly-once append: a newer attempt has begun, or its sequence is done."""
    FENCED = "fenced"
    """Of an exclusive writer: it is the log's no more. What was handed in may have taken effect."""


@dataclass(slots=True, eq=False)
class Record:
    """Something that a process did.

    Attributes:
        number: counts the records of the history from 0.
        process: who did it.
        invoked: when it began: a number that is higher than those of all events before.
        returned: when it ended, by the same count; infinite while it has not.
        result: how.
        error: of one that failed, what was said.
        seconds: when it began, on the clock of the history.
    """

    number: int
    process: str
    invoked: float
    returned: float = field(default=math.inf, kw_only=True)
    result: Result = field(default=Result.PENDING, kw_only=True)
    error: str = field(default="", kw_only=True)
    seconds: float = field(default=0.0, kw_only=True)

    def shown(self, what: str) -> str:
        """Return its place in the history, what it was, and what came of it."""
        text = f"#{self.number} [{self.invoked:g}..{self.returned:g}] {self.process}{what}"
        if self.result is not Result.OK:
            text += f": {self.result.value}"
        return f"{text} ({self.error})" if self.error else text


@dataclass(slots=True, eq=False)
class Operation(Record):
    """One operation on the log, on one position.

    Attributes:
        action: what it does.
        position: where an append was acknowledged, what was read, filled or trimmed, what a tail
            was; of ``trim_to`` the first position that is kept; of ``take`` where the entries
            ended; of ``pass`` the first position. None while it is not known.
        end: of ``pass`` one past the last position.
        entry: what was appended, or read. With tags it is another one than without.
        tags: that entry's, in order.
        wanted: of a reader by tags, which it asked for.
        found: why a read found no entry; None: it found one.
        epochs: of an append, the epochs of its handle's view before and after; where its position
            was reserved, before and after that.
        part: of an exactly-once append, producer, sequence and part. An attempt's entries have
            the same beginning, and numbers in the attempt's order.
        writer: of ``take`` the exclusive writer, by id, that has the log then; of ``append`` and
            ``release`` that which was asked. One's appends have numbers in the order in which
            they were handed in.
        condition: of an append, under which it is to be stored.
        batch: of an append, the number of the first one of those that are stored as a whole.
        conflict: of an append that its condition prevented, the position that it was told.
    """

    action: Action
    position: int | None = None
    end: int | None = None
    entry: bytes | None = None
    tags: tuple[str, ...] = ()
    wanted: Wanted | None = None
    found: GapKind | None = None
    epochs: tuple[int, int] | None = None
    part: tuple[str, int, int] | None = None
    writer: str | None = None
    condition: Condition | None = None
    batch: int | None = None
    conflict: int | None = None

    def __str__(self) -> str:
        what = f": {self.action.value}"
        if self.entry is not None:
            what += f" {_short(self.entry)}"
        if self.position is not None:
            what += f" at {self.position}" if self.action is not Action.TAIL else ""
            what += f" to {self.end}" if self.end is not None else ""
        if self.wanted is not None:
            what += f" for {(' and ' if self.wanted.every else ' or ').join(self.wanted.tags)}"
        if self.action is Action.TAIL and self.position is not None:
            what += f" is {self.position}"
        if self.found is not None:
            what += f" found {self.found.value}"
        if self.epochs is not None:
            what += f" in epoch {self.epochs[0]}" + (
                f" to {self.epochs[1]}" if self.epochs[1] != self.epochs[0] else ""
            )
        if self.part is not None:
            what += " for {} {}.{}".format(*self.part)
        if self.condition is not None:
            what += f" if {self.condition}"
        if self.writer is not None:
            what += f" by writer {self.writer[:8]}"
        return self.shown(what)

    def tell(self, data: bytes, tags: Iterable[str]) -> None:
        """Note the entry that it is about."""
        self.tags = tuple(sorted(set(tags)))
        self.entry = b" #".join([bytes(data), *(tag.encode() for tag in self.tags)])


def _short(entry: bytes) -> str:
    return repr(entry if len(entry) <= 40 else entry[:37] + b"...")


class Events:
    """Counts what happens, so that it is known what came before what.

    Args:
        clock: tells the seconds that messages show; None shows 0.

    Attributes:
        repaired: what began later than this event must succeed: all faults were over.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self.repaired = math.inf
        self._clock = clock
        self._events = 0

    @property
    def seconds(self) -> float:
        """What the clock shows."""
        return self._clock() if self._clock else 0.0

    def event(self) -> int:
        """Count one event, and return its number."""
        self._events += 1
        return self._events

    def note_repaired(self) -> None:
        """Note that no fault comes any more: every operation from now on must succeed."""
        self.repaired = self.event()


class Recording(Events):
    """Operations, and the order in which they began and ended; see :class:`History`."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        super().__init__(clock)
        self.operations: list[Operation] = []
        self.skips: list[str] = []
        """Where a range was read and positions did not follow each other."""

    def invoke(
        self,
        process: str,
        action: Action,
        *,
        position: int | None = None,
        entry: bytes | None = None,
        tags: Iterable[str] = (),
        part: tuple[str, int, int] | None = None,
        writer: str | None = None,
        invoked: float | None = None,
    ) -> Operation:
        """Note that an operation begins, now or at an earlier event."""
        operation = Operation(
            len(self.operations),
            process,
            self.event() if invoked is None else invoked,
            action,
            position=position,
            part=part,
            writer=writer,
            seconds=self.seconds,
        )
        if entry is not None:
            operation.tell(entry, tags)
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
        yield note_read(history, process, item, began)
    if end is not None and expected not in (end, None):
        history.skips.append(f"{process} read up to {end}: after position {expected} came nothing")


async def scan_selected(
    history: Recording,
    process: str,
    items: AsyncIterator[Entry | Gap],
    wanted: Wanted | None,
    start: int,
    end: int,
    *,
    reverse: bool = False,
) -> AsyncIterator[Entry | Gap]:
    """Note what a range holds for a reader by tags, or one that reads backwards.

    Args:
        history: where it is noted, and that positions do not follow each other.
        process: who reads.
        items: what it reads.
        wanted: the tags; None: it reads all.
        start: the first position that it reads.
        end: it reads as far as here at least, or from here, unless it is given up before.
        reverse: whether it reads backwards.
    """
    began = history.event()
    last: Entry | Gap | None = None
    async for item in items:
        before, after = (item, last) if reverse else (last, item)
        begin = start if before is None else before.end
        stop = end if after is None else after.position
        if before is not None and after is not None and begin > stop:
            history.skips.append(f"{process}, which reads by tags, came back to {item.position}")
        note_passed(history, process, wanted, begin, stop, began)
        last = item
        yield note_read(history, process, item, began, wanted)
    begin, stop = (start, end) if last is None else (last.end, end)
    if reverse and last is not None:
        begin, stop = start, last.position
    note_passed(history, process, wanted, begin, stop, began)


def note_passed(
    history: Recording, process: str, wanted: Wanted | None, start: int, end: int, began: int
) -> None:
    """Note that a reader, which began at an event, told nothing of ``[start, end)``, if it is any.

    One that reads all has to tell what each position holds.
    """
    if start < end and wanted is None:
        history.skips.append(f"{process}, which reads backwards: {start} to {end}")
    elif start < end:
        operation = history.invoke(process, Action.SKIP, position=start, invoked=began)
        operation.end, operation.wanted = end, wanted
        history.returns([operation], Result.OK)


def note_read(
    history: Recording,
    process: str,
    item: Entry | Gap,
    began: int,
    wanted: Wanted | None = None,
) -> Entry | Gap:
    """Note what a reader, which began at an event, was told, and return it."""
    operations = [
        history.invoke(process, Action.READ, position=position, invoked=began)
        for position in range(item.position, item.end)
    ]
    for operation in operations:
        operation.wanted = wanted
        if isinstance(item, Entry):
            operation.tell(item.data, item.tags)
        else:
            operation.found = item.kind
    history.returns(operations, Result.OK)
    return item
