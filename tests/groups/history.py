"""What the members of a group did, and whether a correct group allows it.

Members note events as lists: a kind, a time, the member's name, and what the kind says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

Event = list[Any]

GOT, DONE, NACKED, ACKED = "got", "done", "nacked", "acked"
"""Of a queue: a job was received (position, attempt), is done (position), is returned (position,
attempt, delay), and all acknowledgements are durable (positions)."""

BATCH, COMMITTED = "batch", "committed"
"""Of an ordered group: a batch was received (slots with tokens, slots with positions), and a commit
that began at a time has succeeded (that time, slots with tokens, end)."""

FAULT, RESUMED = "fault", "resumed"
"""A member was killed, paused or closed; and a paused one continues."""


class History:
    """Events of all members, in the order of their times."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = sorted(events, key=lambda event: event[1])
        self._faults: dict[str, list[float]] = defaultdict(list)
        for kind, time, who, *_ in self.events:
            if kind in (FAULT, RESUMED):
                self._faults[who].append(time)

    def of(self, kind: str) -> Iterator[Event]:
        """Yield the events of a kind, without their kind."""
        return (rest for name, *rest in self.events if name == kind)

    def faulted(self, who: str, after: float, before: float) -> bool:
        """Whether a member had a fault in some time."""
        return any(after <= time <= before for time in self._faults[who])

    def duplicates(self) -> int:
        """Return how many jobs were done more than once, in all."""
        done = [position for _, _, position in self.of(DONE)]
        return len(done) - len({*done})


def check_queue(
    history: History,
    entries: set[int],
    dead: set[int],
    attempts_max: int,
    *,
    lease: float,
    calm: bool = True,
) -> list[str]:
    """Return what is wrong with the history of a queue.

    Args:
        entries: the positions of all entries of the log.
        dead: those that became dead letters.
        calm: whether nothing but the noted faults can end a lease.
    """
    return [*_queue(history, entries, dead, attempts_max, lease, calm)]


def _queue(
    history: History,
    entries: set[int],
    dead: set[int],
    attempts_max: int,
    lease: float,
    calm: bool,
) -> Iterator[str]:
    finished = {position for _, _, position in history.of(DONE)} | dead
    if lost := sorted(entries - finished):
        yield f"G1: {len(lost)} entries were not processed, the first is {lost[0]}"
    acked: dict[int, float] = {}
    for time, _, positions in history.of(ACKED):
        for position in positions:
            acked.setdefault(position, time)
    nacked: dict[tuple[int, int], tuple[float, float]] = {}
    for time, _, position, attempt, delay in history.of(NACKED):
        nacked[position, attempt] = time, delay
    got: dict[int, dict[int, tuple[float, str]]] = defaultdict(dict)
    for time, who, position, attempt in history.of(GOT):
        if attempt in got[position]:
            yield f"G2: {who} got attempt {attempt} at {position}, which another one had"
        if not 1 <= attempt <= attempts_max:
            yield f"G3: {who} got attempt {attempt} at {position}"
        if (
            position in acked
            and acked[position] < time
            and not history.faulted(who, acked[position], time)
        ):
            yield f"G4: {who} got {position} at {time:.3f}, acknowledged at {acked[position]:.3f}"
        got[position][attempt] = time, who
    for position in dead & {*acked}:
        yield f"G5: {position} is a dead letter, and was acknowledged"
    for position, attempts in got.items():
        for attempt, (time, who) in attempts.items():
            earlier = max((each for each in attempts if each < attempt), default=None)
            if earlier is None:
                continue
            before, whose = attempts[earlier]
            since, delay = nacked.get((position, earlier), (time, 0.0))
            if since < time:
                if calm and time < since + delay and not history.faulted(whose, since, time):
                    yield f"G6: {position} was delayed by {delay}, and came after {time - since}"
                continue
            since = before if before < time else time - lease  # it was noted after a pause
            if (
                calm
                and time - before < lease
                and not history.faulted(whose, since, max(before, time))
            ):
                yield f"G7: {who} got {position} at {time:.3f}, which {whose} has"


def check_ordered(history: History, slots: Mapping[int, int]) -> list[str]:
    """Return what is wrong with the history of an ordered group.

    Args:
        slots: the slot of each position of the log that has an entry.
    """
    return [*_ordered(history, slots)]


def _ordered(history: History, slots: Mapping[int, int]) -> Iterator[str]:
    seen = {position for _, _, _, items in history.of(BATCH) for _, position in items}
    if lost := sorted(slots.keys() - seen):
        yield f"G1: {len(lost)} entries were not processed, the first is {lost[0]}"
    order: dict[int, list[int]] = defaultdict(list)
    for position in sorted(slots):
        order[slots[position]].append(position)
    following = {
        before: after for positions in order.values() for before, after in pairwise(positions)
    }
    newest: dict[int, tuple[int, float]] = {}
    last: dict[tuple[int, int], int] = {}
    owners: dict[tuple[int, int], str] = {}
    committed: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for kind, time, who, *what in history.events:
        if kind == COMMITTED:
            began, tokens, end = what
            for slot, token in tokens:
                higher, since = newest.get(slot, (token, 0.0))
                if higher > token and since < began:
                    yield f"G8: {who} committed slot {slot} under {token} after {higher} had it"
                committed[slot].append((time, end))
        if kind != BATCH:
            continue
        tokens, items = what
        for slot, token in tokens:
            if owners.setdefault((slot, token), who) != who:
                yield f"G9: {who} has slot {slot} under the token of another one"
            higher, since = newest.get(slot, (token, time))
            if higher > token and not history.faulted(who, 0.0, time):
                yield f"G9: {who} got slot {slot} under {token} after {higher} had it"
            if higher <= token:
                newest[slot] = token, since if higher == token else time
        given = dict(tokens)
        for slot, position in items:
            if slots.get(position) != slot:
                yield f"G10: {position} is not in slot {slot}"
            before = last.get((slot, given[slot]))
            if before is not None and following.get(before) != position:
                yield f"G10: in slot {slot}, {who} got {position} after {before}"
            last[slot, given[slot]] = position
            for when, end in committed[slot]:
                if position < end and not history.faulted(who, when, time):
                    yield f"G4: {who} got {position} of slot {slot}, committed up to {end}"
                    break
