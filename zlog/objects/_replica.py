"""A replica of a space, which applies the log, appends to it, and returns outcomes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from zlog import Columns, Retention
from zlog.entry import Gap, GapKind
from zlog.errors import Conflict, NotWritten, StoreTimeout, StoreUnavailable, ZlogError
from zlog.extension import LogPort, ProcessBound, no_entry
from zlog.limits import UNLESS_SETS_MAX
from zlog.objects._decided import Outcome
from zlog.objects._feed import Feed, Window
from zlog.objects._machine import Machine
from zlog.objects._records import (
    Commit,
    DecodeError,
    Range,
    Read,
    ReadSet,
    Tags,
    decode_record,
    encode_commit,
    encode_write,
    given,
    refusal,
)
from zlog.objects._restore import restored
from zlog.objects._rounds import Rounds
from zlog.objects._states import Change, Replicated
from zlog.objects.errors import OutcomeUnknown, PastLost, ResultLost, Stopped, UnsuitableLog

_SLICE = 2000
"""The number of entries that are applied at once. It limits how long readers wait."""

WAIT_SECONDS = 5.0
"""The maximum duration of one wait for new entries in seconds."""

_EARLY_CHECKS = 3
"""How often a transaction is appended with a condition. Several transactions on different keys of
one object make the condition fail although they do not conflict."""

HIDING = (GapKind.UNWRITTEN, GapKind.LOST, GapKind.UNREADABLE, GapKind.FORGED)
"""Gaps that may hide an entry of the space, which a replica can't pass."""

LINEARIZABLE = 0.0
"""The staleness of linearizable reads."""


class Event(NamedTuple):
    """The changes that one entry made, as far as the watch reports them.

    Attributes:
        position: the position of the entry. A later watch can continue at ``position + 1``.
        changes: the reported changes, in order; at least one.
    """

    position: int
    changes: tuple[Change, ...]


class _Pending:
    """An undecided transaction. Its record may be in the log more than once."""

    __slots__ = ("attempt", "data", "missed", "outcome")

    def __init__(self, data: bytes, attempt: int) -> None:
        self.data = data
        self.attempt = attempt
        self.missed = False  # entries that this replica did not apply may have decided it
        self.outcome: Outcome | None = None


class Replica(ProcessBound):
    """Keeps a copy of a space's state in this process, and updates it from the log.

    Args:
        port: gives access to the log.
        name: the name of the space.
        machine: the initial state.
        types: the classes of user-defined types.

    Attributes:
        machine: the state. If entries are trimmed before they are applied, the replica replaces the
            state by that of a checkpoint.
        failed: the error that has stopped the replica, or None.
        torn: whether the state may contain only a part of an entry's changes.
        listeners: functions that are called with the position and the changes of each applied
            entry, while ``port.lock`` is held.
    """

    def __init__(
        self, port: LogPort, name: str, machine: Machine, types: Mapping[str, type[Replicated]]
    ) -> None:
        self.port = port
        self.name = name
        self.tags = Tags.of(name)
        self.types = types
        self.machine = machine
        self.listeners: list[Callable[[int, Sequence[Change]], None]] = []
        self.closing: list[Callable[[], None]] = []
        """Functions to call when the space is closed."""
        self.overtaken = 0
        """The number of times that a trim has overtaken the replica. Listeners have missed entries
        below ``resumed`` then."""
        self.resumed = machine.position
        self.failed: Exception | None = None
        self._goal = 0
        self._ids = port.random_bytes(12).hex()
        self._numbers = itertools.count()
        self.torn = False
        self._fresh = -math.inf
        self._pending: dict[str, _Pending] = {}
        self._tails = Rounds[tuple[int, float]](port)
        self._plays = Rounds[None](port, lambda: self.machine.position)
        self._waits = Rounds[None](port, lambda: self.machine.position)
        self._feed = Feed(port, self.tags.space, machine.position)

    @property
    def log(self) -> str:
        """The log's name."""
        return self.port.log

    def check(self) -> None:
        """Raise the error that has stopped the replica, if any."""
        if self.failed is not None:
            raise self.failed

    def check_actor(self) -> None:
        """Raise an error if this thread can't wait until its own entry is applied."""
        self.check()
        self._plays.check_caller()

    async def sync(self, staleness: float = LINEARIZABLE) -> None:
        """Apply all entries that were acknowledged ``staleness`` seconds ago."""
        self.check()
        if staleness and self.port.monotonic() - self._fresh <= staleness:
            return
        checked = await self._tails.join(self._check_tail)
        assert checked is not None  # without a timeout
        tail, began = checked
        await self.play_to(tail)
        self._fresh = max(self._fresh, began)

    async def _check_tail(self) -> tuple[int, float]:
        """Return the log's tail, and a time; entries acknowledged before it are below the tail."""
        began = self.port.monotonic()
        tail = await self.port.tail()
        check_log(self.port.options, self.log)
        return tail, began

    async def play_to(self, position: int) -> None:
        """Apply all entries below a position that was granted."""
        while self.machine.position < position:
            self._goal = max(self._goal, position)
            try:
                await self._plays.join(self._play)
            except NotWritten:  # another caller may have requested more than the tail
                if self.machine.position < position:
                    raise

    async def wait(self, seen: int, seconds: float = WAIT_SECONDS) -> None:
        """Wait until the state has entries at ``seen`` or above, or until the time is up."""
        self.check()
        seconds = min(seconds, WAIT_SECONDS)

        async def work() -> None:
            position = self._waits.began_at
            if position > seen:
                return
            tail = await self.port.wait(position, seconds)
            if tail is not None:
                try:
                    await self.play_to(tail)
                except NotWritten:  # the tail came from a sequencer that was replaced
                    await self.port.sleep(min(seconds, 0.1))

        await self._waits.join(work, seconds=seconds, seen=seen)

    async def play_window(self, position: int) -> None:
        """Apply the next window of entries below a position. The replica must have one caller."""
        await self._play_windows(position, 1)

    def close(self) -> None:
        """End background tasks, and refuse all later calls."""
        for each in (*self.closing,):
            each()
        self.failed = self.failed or StoreUnavailable(
            f"space {self.name!r} of log {self.log!r} is closed; open it again",
            hint="Close a space only when its objects and watches are no longer used.",
            retryable=False,
        )

    async def _play(self) -> None:
        goal, self._goal = self._goal, 0
        await self._play_windows(goal)

    async def _play_windows(self, goal: int, count: float = math.inf) -> None:
        self.check()
        feed = self._feed
        try:
            try:
                while self.machine.position < goal and count > 0:
                    count -= 1
                    for window in await feed.next(goal):
                        await self._apply(window)
                    if feed.position >= goal:
                        self.machine.position = max(self.machine.position, goal)
            except _Overtaken:
                await self._restart()
        except Stopped as error:
            self.failed = error
            raise
        except BaseException:
            if self.torn:
                self.failed = Stopped(
                    f"applying the entry at {self.machine.position} was interrupted",
                    position=self.machine.position,
                    hint="Open the space again.",
                )
            feed.go_to(self.machine.position)
            raise

    async def _apply(self, window: Window) -> None:
        """Apply entries up to the first gap that may hide an entry."""
        gap = await self._obstacle(window.gaps)
        rows = window.rows
        if gap is not None:
            positions = window.columns.positions
            rows = [i for i in rows if positions[i] < gap.position]
        for begin in range(0, len(rows), _SLICE):
            if begin:
                await self.port.pause()
            with self.port.lock:
                self._apply_slice(window.columns, rows[begin : begin + _SLICE])
        if gap is None:
            return
        self.machine.position = gap.position
        if gap.kind is GapKind.TRIMMED:
            raise _Overtaken
        raise no_entry(gap, self.log)

    async def _obstacle(self, gaps: Iterable[Gap]) -> Gap | None:
        """Return the first gap that may have contained an entry of the space."""
        port, asked = self.port, False
        for gap in gaps:
            if gap.kind in HIDING:
                return gap
            if gap.kind is GapKind.TRIMMED:
                if gap.position >= port.trim_point and not asked:  # the trim point may be newer
                    await port.refresh()
                    asked = True
                if gap.position < port.trim_point:
                    return gap
        return None

    def _apply_slice(self, columns: Columns, rows: Sequence[int]) -> None:
        machine = self.machine
        positions, offsets, data = columns.positions, columns.offsets, columns.data
        apply = machine.apply
        changes: list[Change] | None = [] if self.listeners else None
        machine.changes = changes
        self.torn = True
        for i in rows:
            position = positions[i]
            entry = data[offsets[i] : offsets[i + 1]]
            try:
                record = decode_record(entry)
            except DecodeError as error:
                raise refusal(entry, position, error) from error
            outcome = apply(position, record)
            if outcome is not None:
                self._settle(record, entry, outcome)
            if changes:
                for listener in (*self.listeners,):
                    listener(position, changes)
                changes.clear()
        self.torn = False

    def _settle(self, record: Commit, entry: memoryview, outcome: Outcome) -> None:
        pending = self._pending.get(record.id)
        if pending is None or pending.outcome is not None:
            return
        if entry == pending.data:  # not another attempt's
            results = [given(each) for each in outcome.results]  # later entries may change them
            pending.outcome = outcome._replace(results=results)

    async def _restart(self) -> None:
        """Continue from a checkpoint, because the next entries were trimmed."""
        passed = self.machine.position
        machine = await restored(self.port, self.name, self.types)
        if machine is None or machine.position <= passed:
            raise PastLost(
                f"log {self.log!r} was trimmed beyond {passed}, which this replica had reached"
                f" in space {self.name!r}, and has no later checkpoint"
            )
        with self.port.lock:
            self.machine = machine
            self.overtaken += 1
            self.resumed = machine.position
            for name, pending in self._pending.items():
                pending.missed = True
                if pending.outcome is None:
                    pending.outcome = machine.decided.again(name, pending.attempt)
        self._feed.go_to(machine.position)

    def write(self, ops: Iterable[tuple[Any, ...]]) -> Coroutine[Any, Any, int]:
        """Append commands without a result. Returns the position of their entry."""
        self.check()
        ops = tuple(ops)
        return self.port.append(encode_write(ops), self._tags_of(ops))

    def _tags_of(self, ops: Iterable[tuple[Any, ...]]) -> tuple[str, ...]:
        return self.tags.of_changes(ops) if self.port.ordered else (self.tags.space,)

    async def _append(
        self, data: bytes, ops: Sequence[tuple[Any, ...]], pending: _Pending, reads: ReadSet
    ) -> int | None:
        """Append a transaction's record. Returns its position, or None if it is decided already.

        If the log is ordered by its object, the record is appended only if no object that the
        transaction has read was changed meanwhile. So most conflicts are found without an entry.
        The state machine checks every record, so an append without this condition is correct too.
        """
        unless = [(self.tags.of_object(name),) for name in reads.names]
        early = self.port.ordered and 0 < len(unless) <= UNLESS_SETS_MAX
        for _ in range(_EARLY_CHECKS if early else 0):
            with self.port.lock:
                machine = self.machine
                items = machine.invalid(*reads)
                if items and pending.outcome is None:
                    conflict = Outcome("conflict", machine.position, items=items)
                    pending.outcome = conflict._replace(attempt=pending.attempt)
            if pending.outcome is not None:
                return None
            try:
                tags, after = self._tags_of(ops), machine.position - 1
                return await self.port.append(data, tags, unless, after)
            except Conflict as error:
                await self.play_to(error.position + 1)
        return await self.port.append(data, self._tags_of(ops))

    async def call(self, op: tuple[Any, ...]) -> Any:
        """Execute one command, and return its result.

        Raises:
            Rejected: the object refuses the command.
            OutcomeUnknown: the log did not answer in time, not even after a second attempt.
            ResultLost: the command was executed, but its result is lost.
        """
        name = self.new_id()
        outcome = await self.carry_out(op, name)
        if not outcome.results:
            raise ResultLost(
                f"{op[0]} {op[1]!r} executed command {name!r} at {outcome.position}, but the log"
                " was trimmed before this client read the result, and the checkpoint does not"
                " contain it",
                id=name,
                position=outcome.position,
            )
        return outcome.results[0]

    async def carry_out(self, op: tuple[Any, ...], id: str) -> Outcome:
        """Execute one command, and return its outcome, in which the result may be missing.

        Raises:
            Rejected: the object refuses the command.
            OutcomeUnknown: the log did not answer in time, not even after a second attempt.
        """
        attempt = 0
        while True:
            attempt += 1
            outcome = await self.commit([op], id, attempt, self.machine.position)
            if outcome.code == "committed" or outcome.committed:
                return outcome
            if outcome.error is not None:
                raise outcome.error

    def new_id(self) -> str:
        """Return an id that no other transaction has."""
        return f"{self._ids}.{next(self._numbers):x}"

    async def commit(
        self,
        ops: Iterable[tuple[Any, ...]],
        id: str,
        attempt: int,
        snapshot: int,
        reads: Sequence[Read] = (),
        ranges: Sequence[Range] = (),
    ) -> Outcome:
        """Append a transaction, and apply entries until it is decided.

        If it is unknown whether the append succeeded, the same record is appended again. If both
        are in the log, only the first one counts.
        """
        self.check_actor()
        ops, read_set = tuple(ops), ReadSet(reads, ranges, snapshot)
        data = encode_commit(ops, id, attempt, snapshot, reads, ranges)
        pending = _Pending(data, attempt)
        with self.port.lock:
            if id in self._pending:
                raise ValueError(f"a transaction with the id {id!r} is already running")
            self._pending[id] = pending
        unknown: ZlogError | None = None
        try:
            for _ in range(2):
                position = None
                try:
                    position = await self._append(data, ops, pending, read_set)
                    if position is not None:
                        await self.play_to(position + 1)
                except Stopped:
                    raise
                except ZlogError as error:
                    if position is None and unknown is None and not isinstance(error, StoreTimeout):
                        raise  # nothing was appended
                    unknown = error
                outcome = pending.outcome
                if outcome is not None and not (outcome.code == "late" and pending.missed):
                    return outcome
            raise OutcomeUnknown(
                f"whether transaction {id!r} took effect is unknown: {unknown}", id=id
            ) from unknown
        finally:
            with self.port.lock:
                del self._pending[id]


class _Overtaken(Exception):
    """The next entries were trimmed."""


def check_log(options: Mapping[str, str], log: str) -> None:
    """Raise UnsuitableLog if the log's retention would destroy a space."""
    if Retention.of(options).compact_after is not None:
        raise UnsuitableLog(
            f"log {log!r} keeps only the newest entry of each tag (compact_after), and a space"
            " needs all of its entries"
        )
