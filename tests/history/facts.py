"""What is known of a history, sorted by what the rules of :func:`check` ask of it."""

from __future__ import annotations

import bisect
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter

from tests.history.operations import Action, Operation, Record, Result
from tests.history.recorder import History
from zlog.entry import GapKind

_INDENT = "\n    "


@dataclass(frozen=True)
class Violation:
    """Something that must never happen, and did.

    Attributes:
        property: which of the properties in docs/correctness.md does not hold, P1 to P23.
        message: what happened.
        position: where; None: it is about no single position.
        operations: the operations, or the transactions, that show it.
    """

    property: str
    message: str
    position: int | None = None
    operations: tuple[Record, ...] = ()

    def __str__(self) -> str:
        return _INDENT.join([f"{self.property}: {self.message}", *map(str, self.operations)])


def progress(done: Iterable[Record], repaired: float) -> Iterator[Violation]:
    """P13: once all faults are over, everything succeeds."""
    for each in done:
        if each.invoked > repaired and each.result in (Result.PENDING, Result.FAILED):
            yield Violation("P13", "failed though all faults were over", None, (each,))


@dataclass(slots=True)
class PositionFacts:
    """All that is known of one position."""

    acknowledged: list[Operation] = field(default_factory=list)
    entries: list[Operation] = field(default_factory=list)
    filled: list[Operation] = field(default_factory=list)
    trimmed: list[Operation] = field(default_factory=list)
    unwritten: list[Operation] = field(default_factory=list)
    lost: list[Operation] = field(default_factory=list)
    fills: list[Operation] = field(default_factory=list)


class Facts:
    """A history, sorted by what the rules ask of it."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.positions: dict[int, PositionFacts] = defaultdict(PositionFacts)
        self.appends: dict[bytes, Operation] = {}
        """Those of exactly-once appends stand for all attempts at an entry: from the beginning of
        the first one to the end of the first that succeeded."""
        self.tails: list[Operation] = []
        self.passes: list[Operation] = []
        self.trims = Trims(history.operations)
        for operation in history.operations:
            self._take(operation)
        self.releases = [each for each in history.operations if each.action is Action.RELEASE]
        self.parts = _parts(history.operations)
        for part in self.parts:
            for entry, whole in part.entries.items():
                self._note_append(entry, whole)
        self.seen: dict[bytes, list[Operation]] = defaultdict(list)
        """The operations that show where an entry stands, by entry."""
        for known in self.positions.values():
            for operation in (*known.acknowledged, *known.entries):
                assert operation.entry is not None  # these show one
                self.seen[operation.entry].append(operation)
        self.exclusive = _exclusive(self)
        self.compaction = Compaction(self)

    def _take(self, operation: Operation) -> None:
        if operation.action is Action.APPEND:
            assert operation.entry is not None  # appends have one
            self._note_append(operation.entry, operation)
            if operation.result is Result.OK:
                self._at(operation).acknowledged.append(operation)
        elif operation.action in (Action.TAIL, Action.TAKE) and operation.result is Result.OK:
            self.tails.append(operation)
        elif operation.action is Action.SKIP and operation.result is Result.OK:
            self.passes.append(operation)
        elif operation.action is Action.FILL:
            self._at(operation).fills.append(operation)
        elif operation.action is Action.READ and operation.result is Result.OK:
            known = self._at(operation)
            kinds = {
                None: known.entries,
                GapKind.FILLED: known.filled,
                GapKind.TRIMMED: known.trimmed,
                GapKind.UNWRITTEN: known.unwritten,
                GapKind.LOST: known.lost,
                GapKind.UNREADABLE: known.lost,
                GapKind.FORGED: known.lost,
            }
            kinds[operation.found].append(operation)

    def _note_append(self, entry: bytes, operation: Operation) -> None:
        if entry in self.appends:
            raise ValueError(f"{entry!r} was appended twice")
        self.appends[entry] = operation

    def _at(self, operation: Operation) -> PositionFacts:
        assert operation.position is not None  # it is about one
        return self.positions[operation.position]

    def written(self) -> Iterator[tuple[Operation, int, float]]:
        """Return the appends that are in the log as far as is known, where, and since when."""
        for entry, operation in self.appends.items():
            shown = self.seen.get(entry)
            if shown:
                first = min(shown, key=attrgetter("returned"))
                assert first.position is not None  # it shows one
                since = first.returned
                # Where something was trimmed, what is shown may have come again, much later.
                if operation.result is Result.OK and not (operation.part and self.trims.any):
                    since = min(since, operation.returned)
                yield operation, first.position, since

    def may_trim(self, position: int, by: float) -> bool:
        """Whether a position may have been trimmed before an event: as asked for, or compacted."""
        return self.trims.asked(position) <= by or self.compaction.may_trim(position, by)

    def is_known(self, position: int) -> bool:
        """Whether an entry or a fill was found at a position: nothing else ever stood there."""
        known = self.positions.get(position)
        return known is not None and bool(known.acknowledged or known.entries or known.filled)


@dataclass(slots=True)
class ExclusiveFacts:
    """What is known of one exclusive writer.

    Attributes:
        take: how it got the log.
        appends: of its entries, in the order in which these were handed in.
        stands: where those are that are in the log, by their operations' numbers.
        ends: operations that told it that the log is another's, or open to all.
    """

    take: Operation
    appends: list[Operation] = field(default_factory=list)
    stands: dict[int, int] = field(default_factory=dict)
    ends: list[Operation] = field(default_factory=list)

    @property
    def id(self) -> str | None:
        """Who it is."""
        return self.take.writer

    @property
    def start(self) -> int:
        """Where the log's entries ended when it took it."""
        return self.take.position or 0


def _exclusive(facts: Facts) -> list[ExclusiveFacts]:
    writers = {
        each.writer: ExclusiveFacts(each)
        for each in facts.history.operations
        if each.action is Action.TAKE and each.result is Result.OK
    }
    for operation in facts.history.operations:
        writer = writers.get(operation.writer)
        if writer is None or operation.action is Action.TAKE:
            continue
        released = operation.action is Action.RELEASE and operation.result is Result.OK
        if released or operation.result is Result.FENCED:
            writer.ends.append(operation)
        if operation.action is Action.APPEND:
            writer.appends.append(operation)
            shown = facts.seen.get(operation.entry or b"")
            if shown:
                writer.stands[operation.number] = shown[0].position or 0
    return [*writers.values()]


@dataclass(slots=True)
class Part:
    """All attempts at one part of an exactly-once append.

    Attributes:
        name: producer, sequence and part.
        attempts: the entries of each, in its order, in the order in which the attempts began.
        entries: for each, an operation that stands for all attempts that have it.
    """

    name: tuple[str, int, int]
    attempts: list[list[Operation]]
    entries: dict[bytes, Operation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        by_entry: dict[bytes, list[Operation]] = defaultdict(list)
        for attempt in self.attempts:
            entries = [each.entry or b"" for each in attempt]
            if len(set(entries)) < len(entries):
                raise ValueError(f"{self.name} has an entry twice: the two cannot be told apart")
            for operation in attempt:
                by_entry[operation.entry or b""].append(operation)
        self.entries = {entry: _whole(tries) for entry, tries in by_entry.items()}

    @property
    def in_order(self) -> bool:
        """Whether all attempts had the same entries in the same order."""
        orders = {tuple(each.entry for each in attempt) for attempt in self.attempts}
        return len(orders) == 1


def _parts(operations: Iterable[Operation]) -> list[Part]:
    attempts: dict[tuple[object, ...], list[Operation]] = defaultdict(list)
    for operation in operations:
        if operation.action is Action.APPEND_ONCE:
            attempts[operation.part, operation.process, operation.invoked].append(operation)
    parts: dict[tuple[str, int, int], list[list[Operation]]] = defaultdict(list)
    for attempt in sorted(attempts.values(), key=lambda each: each[0].invoked):
        assert attempt[0].part is not None  # it has one
        parts[attempt[0].part].append(attempt)
    return [Part(name, tries) for name, tries in parts.items()]


def _whole(tries: list[Operation]) -> Operation:
    """One operation for all attempts at an entry, which come in the order of their beginnings."""
    done = [each.returned for each in tries if each.result is Result.OK]
    return replace(
        tries[0],
        returned=min(done, default=math.inf),
        result=Result.OK if done else Result.FAILED,
    )


class Trims:
    """Tells when a position was asked to be trimmed, and when that was done."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self.single: dict[int, list[Operation]] = defaultdict(list)
        points: list[Operation] = []
        for operation in operations:
            assert operation.action not in (Action.TRIM, Action.TRIM_TO) or (
                operation.position is not None
            )
            if operation.action is Action.TRIM:
                self.single[operation.position or 0].append(operation)
            elif operation.action is Action.TRIM_TO and operation.result is not Result.REFUSED:
                points.append(operation)
        self.any = bool(points or self.single)
        points.sort(key=lambda each: each.position or 0)
        self._points = [each.position or 0 for each in points]
        self._asked = _suffix_minima([each.invoked for each in points])
        self._done = _suffix_minima(
            [each.returned if each.result is Result.OK else math.inf for each in points]
        )

    def wanted(self, position: int) -> bool:
        """Whether a client asked to trim the position, with any outcome."""
        return self.asked(position) < math.inf

    def asked(self, position: int) -> float:
        """When a trim of the position was first invoked; infinite: never."""
        at = bisect.bisect_right(self._points, position)
        single = (e.invoked for e in self.single[position] if e.result is not Result.REFUSED)
        return min(self._asked[at], min(single, default=math.inf))

    def point_asked(self, position: int) -> float:
        """When a trim of all up to the position was first invoked; infinite: never."""
        return self._asked[bisect.bisect_right(self._points, position)]

    def done(self, position: int) -> float:
        """When one was first acknowledged; infinite: never."""
        at = bisect.bisect_right(self._points, position)
        single = (e.returned for e in self.single[position] if e.result is Result.OK)
        return min(self._done[at], min(single, default=math.inf))


class Compaction:
    """Tells which entries may be trimmed since they are not the newest of any of their tags."""

    def __init__(self, facts: Facts) -> None:
        operations = facts.history.operations
        self._positions = facts.positions
        self.since = min(
            (each.invoked for each in operations if each.action is Action.COMPACT),
            default=math.inf,
        )
        """When it was turned on; infinite: never."""
        appended: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for operation, position, _ in facts.written():
            for tag in operation.tags:
                appended[tag].append((position, operation.invoked))
        # What was trimmed before anyone read it may have had any tag.
        unread = [
            (position, trims[0].invoked)
            for position, trims in facts.trims.single.items()
            if trims and not facts.is_known(position)
        ]
        self._unread = _Later(unread)
        self._appended = {tag: _Later(known) for tag, known in appended.items()}

    def may_trim(self, position: int, by: float) -> bool:
        """Whether a position may have been trimmed by it before an event.

        So may be what was never found to be an entry: a stripe of which nothing is left goes as a
        whole.
        """
        if self.since >= by:
            return False
        known = self._positions.get(position)
        shown = (*known.acknowledged, *known.entries)[:1] if known else ()
        return all(each.tags and self._superseded(each.tags, position, by) for each in shown)

    def _superseded(self, tags: Iterable[str], position: int, by: float) -> bool:
        if self._unread.since(position) < by:
            return True
        return all(
            tag in self._appended and self._appended[tag].since(position) < by for tag in tags
        )


class _Later:
    """Since when there may be something behind a position.

    Args:
        known: positions, and since when.
    """

    def __init__(self, known: Iterable[tuple[int, float]]) -> None:
        ordered = sorted(known)
        self._positions = [position for position, _ in ordered]
        self._since = _suffix_minima([since for _, since in ordered])

    def since(self, position: int) -> float:
        """Return the event; infinite: never."""
        return self._since[bisect.bisect_right(self._positions, position)]


def _suffix_minima(values: list[float]) -> list[float]:
    minima = list(itertools.accumulate([math.inf, *reversed(values)], min))
    return minima[::-1]
