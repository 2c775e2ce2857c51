"""P15: each entry of an exactly-once append is in the log once, whatever its attempts."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator

from tests.history.facts import Facts, Part, Violation
from tests.history.operations import Operation, Result


def at_one_position(facts: Facts) -> Iterator[Violation]:
    """No entry is there twice, but where one was to be trimmed: then it may come again."""
    for part in facts.parts:
        for entry in part.entries:
            positions = {each.position or 0: each for each in facts.seen.get(entry, ())}
            kept = [position for position in positions if not facts.trims.wanted(position)]
            if len(kept) > 1:
                yield Violation(
                    "P15",
                    f"an entry was appended {len(kept)} times: at {sorted(kept)}",
                    None,
                    (*_tries(part, entry), *(positions[position] for position in kept)),
                )


def there_for_good(facts: Facts) -> Iterator[Violation]:
    """What an attempt that succeeded was given is there from then on.

    An entry that no reader has seen is missing for certain if everything is known of all positions
    below a tail that was asked for after the attempt.
    """
    known = next(p for p in itertools.count() if not facts.is_known(p))
    tails = sorted(facts.tails, key=lambda tail: tail.invoked)
    began = [tail.invoked for tail in tails]
    lowest = list(itertools.accumulate([tail.position or 0 for tail in reversed(tails)], min))
    lowest.reverse()
    for part in facts.parts:
        for entry, whole in part.entries.items():
            if whole.result is not Result.OK:
                continue
            shown = facts.seen.get(entry, ())
            later = bisect.bisect_right(began, whole.returned)
            if not shown and later < len(tails) and lowest[later] <= known:
                yield Violation(
                    "P15",
                    f"an entry was appended, and is at no position below the tail {lowest[later]}",
                    None,
                    _tries(part, entry),
                )
            since = _certain_since(facts, part, entry, whole.returned)
            for position in {each.position or 0 for each in shown}:
                found = facts.positions[position]
                for read in (*found.unwritten, *found.lost):
                    if read.invoked > since:
                        yield Violation(
                            "P15",
                            f"the entry at {position} was appended, and was not there later",
                            position,
                            (*_tries(part, entry), read),
                        )


def _certain_since(facts: Facts, part: Part, entry: bytes, appended: float) -> float:
    """Return since when an entry that was appended is known to be wherever it was found.

    Where something was trimmed it may have come again, with any attempt that had not ended when it
    was appended.
    """
    if not facts.trims.any:
        return appended
    ends = (
        each.returned if each.result in (Result.OK, Result.SUPERSEDED) else math.inf
        for each in _tries(part, entry)
        if each.returned > appended
    )
    return max(ends, default=appended)


def in_order(facts: Facts) -> Iterator[Violation]:
    """Entries that come in the same order each time stand in it, but for lost positions.

    An entry that stands behind a later one had a position before that, which was filled, or was
    another's: so what lies before the later one can't all be the part's. Where something was
    trimmed, entries may come again, and nothing is said.
    """
    if facts.trims.any:
        return
    for part in facts.parts:
        if part.in_order:
            yield from _in_order(facts, part)


def _in_order(facts: Facts, part: Part) -> Iterator[Violation]:
    stands: list[tuple[int, int, Operation]] = []
    for index, entry in enumerate(part.entries):
        shown = facts.seen.get(entry)
        if shown:
            stands.append((index, shown[0].position or 0, shown[0]))
    mine = {position for _, position, _ in stands}
    unbroken: dict[int, int] = {}  # how many of this part's entries are right before a position
    for position in sorted(mine):
        unbroken[position] = unbroken.get(position - 1, -1) + 1
    higher: list[tuple[int, int, Operation]] = []  # positions that fall, of entries before
    for index, position, operation in stands:
        while higher and higher[-1][1] < position:
            higher.pop()
        if higher and unbroken[position] >= index - higher[-1][0]:
            yield Violation(
                "P15",
                f"an entry at {higher[-1][1]} was to stand before the one at {position}",
                position,
                (higher[-1][2], operation),
            )
        higher.append((index, position, operation))


def _tries(part: Part, entry: bytes) -> tuple[Operation, ...]:
    return tuple(each for attempt in part.attempts for each in attempt if each.entry == entry)
