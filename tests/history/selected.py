"""P20: a reader by tags is told of each entry that has them, and of no other."""

from __future__ import annotations

import bisect
from collections.abc import Iterator

from tests.history.facts import Facts, Violation


def told_what_fits(facts: Facts) -> Iterator[Violation]:
    """It is told of no entry that lacks them."""
    for known in facts.positions.values():
        for read in known.entries:
            if read.wanted is not None and not read.wanted.fit(read.tags):
                message = f"a reader by tags was told of {read.position}, which has not got them"
                yield Violation("P20", message, read.position, (read,))


def passed_what_does_not(facts: Facts) -> Iterator[Violation]:
    """It passes nothing in silence that ever holds such an entry, unless that was to be trimmed."""
    shown = {
        position: (*known.acknowledged, *known.entries)[0]
        for position, known in facts.positions.items()
        if known.acknowledged or known.entries
    }
    positions = sorted(shown)
    for passed in facts.passes:
        start, end = passed.position or 0, passed.end or 0
        for at in range(bisect.bisect_left(positions, start), bisect.bisect_left(positions, end)):
            position = positions[at]
            found = shown[position]
            assert passed.wanted is not None  # it asked for some
            if passed.wanted.fit(found.tags) and not facts.may_trim(position, passed.returned):
                message = f"a reader by tags passed {position}, which holds an entry with them"
                yield Violation("P20", message, position, (found, passed))
