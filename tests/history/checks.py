"""What must hold of every history of a log, and telling where it does not.

Positions come back in the replies, so that no search is needed: every rule is a pass over the
operations in some order, O(n log n) together. docs/correctness.md says P1 to P21 and P25 in words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from operator import attrgetter

from tests.history.appended_once import at_one_position, in_order, there_for_good
from tests.history.conditional import batches_are_whole, conditions_hold
from tests.history.exclusive import (
    fenced_for_good,
    handed_in_order,
    in_a_row,
    refused_to_others,
)
from tests.history.facts import Facts, Violation, progress
from tests.history.operations import Operation, Result
from tests.history.recorder import History
from tests.history.selected import passed_what_does_not, told_what_fits


def check(history: History) -> list[Violation]:
    """Return every violation of P1 to P13, P15, P17 to P21, and P25 in a history.

    Raises:
        ValueError: two appends of the history have the same entry, so that it is not
            known which of them a reader found.
    """
    facts = Facts(history)
    return [violation for rule in _RULES for violation in rule(facts)]


Rule = Callable[[Facts], Iterator[Violation]]


def _durable(facts: Facts) -> Iterator[Violation]:
    """P1, P6: what was acknowledged is there from then on."""
    for position, known in facts.positions.items():
        for append in known.acknowledged:
            for read in (*known.unwritten, *known.lost):
                if read.invoked > append.returned:
                    own = read.process == append.process
                    assert read.found is not None  # it found a gap
                    yield Violation(
                        "P6" if own else "P1",
                        f"position {position} was acknowledged, and found {read.found.value} later",
                        position,
                        (append, read),
                    )
            if known.filled:
                yield Violation(
                    "P1",
                    f"position {position} was acknowledged, and is filled",
                    position,
                    (append, known.filled[0]),
                )


def _unique(facts: Facts) -> Iterator[Violation]:
    """P2, P11: an entry is at one position at most, and a position was acknowledged once."""
    for position, known in facts.positions.items():
        if len(known.acknowledged) > 1:
            yield Violation(
                "P2",
                f"position {position} was acknowledged to {len(known.acknowledged)} appends",
                position,
                tuple(known.acknowledged),
            )
    for entry, shown in facts.seen.items():
        positions = {each.position: each for each in shown}
        append = facts.appends.get(entry)
        if len(positions) > 1 and not (append and append.part):
            certain = append is not None and append.result is Result.OK
            yield Violation(
                "P2" if certain else "P11",
                f"one append is at {len(positions)} positions: {sorted(p or 0 for p in positions)}",
                None,
                (*([append] if append else []), *positions.values()),
            )
        if append is not None and append.result is Result.REFUSED:
            yield Violation("P11", "a refused append is in the log", None, (append, *shown[:1]))


def _genuine(facts: Facts) -> Iterator[Violation]:
    """P12: what is read was appended, and before that."""
    for position, known in facts.positions.items():
        for read in known.entries:
            append = facts.appends.get(read.entry or b"")
            if append is None:
                message = f"position {position} holds an entry that was not appended"
                yield Violation("P12", message, position, (read,))
            elif append.invoked > read.returned:
                message = f"position {position} was read before its entry was appended"
                yield Violation("P12", message, position, (append, read))


def _agreed(facts: Facts) -> Iterator[Violation]:
    """P3: all readers find the same."""
    for position, known in facts.positions.items():
        by_content: dict[bytes | None, Operation] = {}
        for read in (*known.acknowledged, *known.entries, *known.filled):
            by_content.setdefault(read.entry, read)
        if len(by_content) > 1:
            message = f"position {position} holds {len(by_content)} different things"
            yield Violation("P3", message, position, tuple(by_content.values()))


def _settled(facts: Facts) -> Iterator[Violation]:
    """P7: what was read once never vanishes, and no reader passes over anything."""
    for position, known in facts.positions.items():
        settled = [*known.entries, *known.filled]
        first = min(settled, key=attrgetter("returned"), default=None)
        for read in (*known.unwritten, *known.lost):
            if first is not None and read.invoked > first.returned:
                message = f"position {position} was settled, and is open again"
                yield Violation("P7", message, position, (first, read))
    for skip in facts.history.skips:
        yield Violation("P7", f"positions were passed over: {skip}")


def _real_time(facts: Facts) -> Iterator[Violation]:
    """P4: what begins after another append has ended stands behind it. Also after a tail (P5)."""
    floors = [(since, position, append) for append, position, since in facts.written()]
    tails = [(tail.returned, (tail.position or 0) - 1, tail) for tail in facts.tails]
    yield from _below(
        floors,
        [(append.invoked, position, append) for append, position, _ in facts.written()],
        "P4",
        "an append stands at {0}, though one at {1} was in the log before it began",
    )
    yield from _below(
        tails,
        [(append.invoked, position, append) for append, position, _ in facts.written()],
        "P5",
        "an append stands at {0}, though the tail was above {1} before it began",
    )


def _tail(facts: Facts) -> Iterator[Violation]:
    """P5: the tail is above all that was acknowledged before, and never goes back."""
    asked = [(tail.invoked, (tail.position or 0) - 1, tail) for tail in facts.tails]
    yield from _below(
        [(since, position - 1, append) for append, position, since in facts.written()],
        asked,
        "P5",
        "the last position below the tail was {0}, though one above {1} was in the log before",
    )
    yield from _below(
        [(tail.returned, (tail.position or 0) - 2, tail) for tail in facts.tails],
        asked,
        "P5",
        "the tail went back: the last position below it was {0}, and had been above {1}",
    )


def _below(
    floors: list[tuple[float, int, Operation]],
    later: list[tuple[float, int, Operation]],
    name: str,
    message: str,
) -> Iterator[Violation]:
    """Find what is not above a floor that was there before it began.

    Both lists hold (event, position, operation): the event at which a floor is known, and that at
    which the other began.
    """
    floors.sort(key=lambda each: each[0])
    later.sort(key=lambda each: each[0])
    highest, shows = -math.inf, None
    waiting = iter(floors)
    coming = next(waiting, None)
    for began, position, operation in later:
        while coming is not None and coming[0] < began:
            if coming[1] > highest:
                highest, shows = coming[1], coming[2]
            coming = next(waiting, None)
        if position <= highest and shows is not None and shows is not operation:
            text = message.format(position, int(highest))
            yield Violation(name, text, position, (shows, operation))


def _epochs(facts: Facts) -> Iterator[Violation]:
    """P8: what was granted in an epoch is above what was granted and written in earlier ones."""
    known = [
        (append.epochs, append.position or 0, append)
        for append in facts.appends.values()
        if append.epochs is not None and append.result is Result.OK
    ]
    yield from _below(
        [(epochs[1], position, append) for epochs, position, append in known],
        [(epochs[0], position, append) for epochs, position, append in known],
        "P8",
        "an append stands at {0}, though one at {1} was granted in an earlier epoch",
    )


def _filled(facts: Facts) -> Iterator[Violation]:
    """P9: a fill never replaces an entry, and decides what it fills."""
    for position, known in facts.positions.items():
        data = [*known.acknowledged, *known.entries]
        for fill in known.fills:
            if fill.result is Result.OK and data and not facts.may_trim(position, fill.returned):
                message = f"position {position} was filled, and holds an entry"
                yield Violation("P9", message, position, (fill, data[0]))
            if fill.result is Result.WRITTEN and known.filled:
                message = f"position {position} held an entry, and is filled"
                yield Violation("P9", message, position, (fill, known.filled[0]))
            if fill.result is Result.OK:
                open_again = [each for each in known.unwritten if each.invoked > fill.returned]
                if open_again:
                    message = f"position {position} was filled, and is open again"
                    yield Violation("P9", message, position, (fill, open_again[0]))


def _trimmed(facts: Facts) -> Iterator[Violation]:
    """P10, P21: only what was asked for or is superseded is trimmed, and it stays so."""
    for position, known in facts.positions.items():
        done = facts.trims.done(position)
        compacted = facts.compaction.since
        for read in known.trimmed:
            if facts.may_trim(position, read.returned):
                continue
            if read.returned < compacted:
                message = f"position {position} is trimmed, and no client had asked for that"
                yield Violation("P10", message, position, (read,))
            else:
                message = f"position {position} is trimmed, and its entry was the newest of a tag"
                shown = (*known.acknowledged, *known.entries)[:1]
                yield Violation("P21", message, position, (*shown, read))
        found = _TrimKnown(known.trimmed)
        for read in (*known.entries, *known.filled, *known.unwritten, *known.lost):
            # While a trim_to is under way, some readers have heard of it and others have not.
            # So it is where a stripe without entries goes, in which there may be fills.
            moving = facts.trims.point_asked(position) < read.returned or (
                compacted < read.returned and read.found is not None
            )
            seen = found.before(read, by_all=not moving)
            if seen is not None or read.invoked > done:
                message = f"position {position} was trimmed before, and is not any more"
                yield Violation("P10", message, position, (*([seen] if seen else []), read))


class _TrimKnown:
    """Who first found a position trimmed, and when."""

    def __init__(self, reads: list[Operation]) -> None:
        self._first: dict[str, Operation] = {}
        for read in sorted(reads, key=attrgetter("returned")):
            self._first.setdefault(read.process, read)

    def before(self, read: Operation, *, by_all: bool) -> Operation | None:
        """Return who had found it so before a read, any process or the same one."""
        candidates = self._first.values() if by_all else [self._first.get(read.process)]
        for each in candidates:
            if each is not None and each.returned < read.invoked:
                return each
        return None


_RULES: tuple[Rule, ...] = (
    _durable,
    _unique,
    _genuine,
    _agreed,
    _settled,
    _real_time,
    _tail,
    _epochs,
    _filled,
    _trimmed,
    lambda facts: progress(facts.history.operations, facts.history.repaired),
    at_one_position,
    there_for_good,
    in_order,
    handed_in_order,
    in_a_row,
    fenced_for_good,
    refused_to_others,
    told_what_fits,
    passed_what_does_not,
    conditions_hold,
    batches_are_whole,
)
