"""P25: conditions hold where entries are stored, and a batch is stored as a whole or not at all."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator

from tests.history.facts import Facts, Violation
from tests.history.operations import Operation
from zlog._append.conditions import Condition

_AT_LAST = 2.0**62
"""Later than all events."""


class _Shown:
    """The entries that are known to be in the log, by position and by tag."""

    def __init__(self, facts: Facts) -> None:
        self.entries = {
            position: (*known.acknowledged, *known.entries)[0]
            for position, known in facts.positions.items()
            if known.acknowledged or known.entries
        }
        self._tagged: dict[str, list[int]] = defaultdict(list)
        for position in sorted(self.entries):
            for tag in self.entries[position].tags:
                self._tagged[tag].append(position)

    def with_all(self, tags: tuple[str, ...], start: int, end: int) -> Iterator[Operation]:
        """Return the entries of ``[start, end)`` that have all tags."""
        found = self._tagged[tags[0]]
        for at in found[bisect.bisect_left(found, start) : bisect.bisect_left(found, end)]:
            if {*tags} <= {*self.entries[at].tags}:
                yield self.entries[at]


def conditions_hold(facts: Facts) -> Iterator[Violation]:
    """No entry conflicts with a stored one, and whoever was told of a conflict had one.

    What was trimmed alone, the object has forgotten. It knows its trim point.
    """
    shown = _Shown(facts)
    for append in facts.appends.values():
        if append.condition is None:
            continue
        found = facts.seen.get(append.entry or b"")
        if append.batch == append.number and found:
            yield from _stored(facts, shown, append, append.condition, found[0].position or 0)
        if append.conflict is not None:
            yield from _prevented(facts, shown, append, append.condition, append.conflict)


def _stored(
    facts: Facts, shown: _Shown, append: Operation, condition: Condition, position: int
) -> Iterator[Violation]:
    if condition.expect not in (None, position):
        yield Violation("P25", f"it is at {position}", position, (append,))
    for tags in condition.unless:
        for entry in shown.with_all(tags, condition.start, position):
            at = entry.position or 0
            alone = any(trim.invoked <= append.returned for trim in facts.trims.single[at])
            gone = alone or (not condition.start and facts.may_trim(at, append.returned))
            if not gone:
                message = f"it was stored at {position} in spite of {at}"
                yield Violation("P25", message, position, (append, entry))


def _prevented(
    facts: Facts, shown: _Shown, append: Operation, condition: Condition, conflict: int
) -> Iterator[Violation]:
    entry = shown.entries.get(conflict)
    if condition.expect is not None or facts.may_trim(conflict, append.returned):
        if condition.expect == conflict and not condition.unless:
            yield Violation("P25", "the tail was as expected", conflict, (append,))
        return
    fits = entry is not None and any({*tags} <= {*entry.tags} for tags in condition.unless)
    known = facts.appends.get(entry.entry or b"") if entry is not None else None
    if not fits or conflict < condition.start or (known and known.invoked > append.returned):
        message = f"it was prevented by {conflict}, which does not conflict"
        yield Violation("P25", message, conflict, (append, *([entry] if entry else [])))


def batches_are_whole(facts: Facts) -> Iterator[Violation]:
    """Of a batch all entries are there, one after another, or none is."""
    batches: dict[int, list[Operation]] = defaultdict(list)
    for append in facts.appends.values():
        if append.batch is not None:
            batches[append.batch].append(append)
    for batch in batches.values():
        places = [facts.seen.get(append.entry or b"") for append in batch]
        known = [(i, found[0].position or 0) for i, found in enumerate(places) if found]
        if not known:
            continue
        first = known[0][1] - known[0][0]
        for i, append in enumerate(batch):
            found, position = places[i], first + i
            if found is None and not facts.may_trim(position, _AT_LAST):
                message = f"a part of a batch is missing at {position}"
                yield Violation("P25", message, position, (append,))
            elif found is not None and found[0].position != position:
                yield Violation("P25", "a batch is scattered", position, tuple(batch))
