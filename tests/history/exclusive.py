"""P17 to P19: what one exclusive writer at a time means for a log's entries."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from operator import attrgetter

from tests.history.facts import Facts, Violation
from tests.history.operations import Operation, Result


def handed_in_order(facts: Facts) -> Iterator[Violation]:
    """P17: a writer's entries stand in their order, and come behind none that fails unheard.

    An entry that no reader has seen is missing for certain where there are no positions for it
    between those that stand before and behind it.
    """
    for writer in facts.exclusive:
        before: Operation | None = None
        position = writer.start - 1
        missing: list[Operation] = []
        for append in writer.appends:
            at = writer.stands.get(append.number)
            if at is None:
                missing.append(append)
                continue
            if at <= position and before is not None:
                message = f"an entry stands at {at}, and one at {position} was handed in before it"
                yield Violation("P17", message, at, (before, append))
            unheard = [each for each in missing if each.returned >= append.invoked]
            if at > position and at - position - 1 < len(unheard):
                message = f"the entry at {at} came behind one that is missing, and had not failed"
                yield Violation("P17", message, at, (unheard[-1], append))
            if at - position - 1 > len(missing):
                message = f"the entry at {at} came behind one at {position}, and none in between"
                yield Violation("P18", message, at, (*([before] if before else []), append))
            before, position, missing = append, at, []


def in_a_row(facts: Facts) -> Iterator[Violation]:
    """P18: from where a writer took the log up to its last entry, all positions have its own."""
    for writer in facts.exclusive:
        # Since when an entry at this position or above is known to be in the log.
        since, shows = math.inf, None
        for position in range(max(writer.stands.values(), default=-1), writer.start - 1, -1):
            known = facts.positions.get(position)
            if known is None:
                continue
            for other in (*known.acknowledged, *known.entries, *known.filled):
                append = facts.appends.get(other.entry or b"")
                if append is None or append.writer != writer.id:
                    message = f"position {position} lies among the entries of a writer"
                    yield Violation("P18", f"{message}, and is not its own", position, (other,))
                    break
            for read in (*known.unwritten, *known.lost):
                if read.invoked > since and shows is not None:
                    message = f"position {position} was open below an entry that had been seen"
                    yield Violation("P18", message, position, (shows, read))
                    break
            here = (*known.acknowledged, *known.entries)
            first = min(here, key=attrgetter("returned"), default=None)
            if first is not None and first.returned < since:
                since, shows = first.returned, first


def fenced_for_good(facts: Facts) -> Iterator[Violation]:
    """P19: a writer adds nothing behind where another took the log, nor once it knows of it."""
    takes = {each.start: each.take for each in facts.exclusive}
    ends = dict(itertools.pairwise([*sorted(takes), math.inf]))
    for writer in facts.exclusive:
        told = min(writer.ends, key=attrgetter("returned"), default=None)
        for append in writer.appends:
            at = writer.stands.get(append.number)
            if at is not None and told is not None and append.invoked > told.returned:
                message = f"the entry at {at} is by a writer that knew that it was fenced"
                yield Violation("P19", message, at, (told, append))
            if at is not None and at >= (end := ends[writer.start]):
                message = f"the entry at {at} stands behind where another writer took the log"
                yield Violation("P19", message, at, (takes[int(end)], append))


def refused_to_others(facts: Facts) -> Iterator[Violation]:
    """P19: while a log is exclusive, no client appends to it without being its writer."""
    takes = sorted((each.take for each in facts.exclusive), key=attrgetter("returned"))
    appends = [each for each in facts.appends.values() if each.writer is None]
    appends = [each for each in appends if each.result is Result.OK]
    held: Operation | None = None
    coming = iter(takes)
    take = next(coming, None)
    for append in sorted(appends, key=attrgetter("invoked")):
        while take is not None and take.returned < append.invoked:
            held, take = take, next(coming, None)
        if held is None:
            continue
        may_be_open = (
            each.result is not Result.OK or each.returned > held.invoked
            for each in facts.releases
            if each.invoked < append.returned
        )
        if not any(may_be_open):
            message = "a client appended to an exclusive log without being its writer"
            yield Violation("P19", message, append.position, (held, append))
