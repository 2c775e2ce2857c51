"""What append must do to a stripe object, on top of what `model.StripeModel` says of the rest.

It looks for earlier copies at every position that a request allows, and knows nothing of indexes.
"""

from __future__ import annotations

import errno
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from .appended import Appended, PartState
from .model import StripeModel
from .replies import WRITTEN, Answer, Code, Slot, State
from .requests import TIME, WRITER, AppendPart, Entry
from .wire import crc32c

MISSING = Answer(-errno.ENOENT)
INVALID = Answer(-errno.EINVAL)
UNWRITTEN = Slot(State.UNWRITTEN)
TRIMMED = Slot(State.TRIMMED)


@dataclass
class AppendModel(StripeModel):
    """A stripe object whose appends may come from clients that know no position."""

    appenders: dict[bytes, tuple[int, int]] = field(default_factory=dict)  # number, position

    @property
    def tail(self) -> int:
        """The position of the next append."""
        return max(-1 if self.highest is None else self.highest, (self.start or 0) - 1) + 1

    def append(
        self,
        epoch: int,
        parts: Sequence[AppendPart],
        writer: bytes = WRITER,
        since: int = 0,
        timestamp: int = TIME,
        in_block: int = 0,
        crcs: Sequence[int] | None = None,
    ) -> Answer:
        """append: a part that is there stays there; else its condition decides."""
        return self._append((), epoch, parts, writer, since, timestamp, in_block, crcs)

    def _append(
        self,
        forgotten: Collection[int],  # positions whose ids the host may have forgotten, and has
        epoch: int,
        parts: Sequence[AppendPart],
        writer: bytes,
        since: int,
        timestamp: int,
        in_block: int,
        crcs: Sequence[int] | None = None,
    ) -> Answer:
        entries = [entry for part in parts for entry in part.entries]
        if not self.epoch:
            return MISSING
        if self.geometry[0] != 1 or not _valid_append(parts, entries, crcs):
            return INVALID
        tail = self.tail
        number, last = self.appenders.get(writer, (-1, -1))
        end = last + 1 if entries[0].number <= number else 0
        kept = {p: id_ for p, id_ in self.freed.items() if p >= self.trim_point}
        ids = self.ids | {p: id_ for p, id_ in kept.items() if p not in forgotten}
        where = range(max(since, self.trim_point), end)
        copies = [self._copy_of(part, writer, ids, where) for part in parts]
        hidden = [p for p in range(since, end) if self.cell(p) == TRIMMED and p not in ids]
        if any(copy is not None for copy in copies):
            found = [
                (PartState.SEARCHED, part.start) if copy is None else (PartState.APPENDED, copy)
                for part, copy in zip(parts, copies, strict=True)
            ]
            known = since if hidden and None in copies else tail
            return Answer(Code.OK, Appended(tail=tail, since=known, outcomes=tuple(found)))
        if hidden:
            return Answer(Code.BELOW_TRIM_POINT, max(hidden[0] + 1, self.trim_point))
        if stale := self._stale(epoch):
            return stale
        conflicts = [self._conflict(part, tail, i == 0) for i, part in enumerate(parts)]
        if any(conflict is not None for conflict in conflicts):
            found = [
                (PartState.SEARCHED, tail if part.unless else part.start)
                if conflict is None
                else (PartState.CONFLICT, conflict)
                for part, conflict in zip(parts, conflicts, strict=True)
            ]
            return Answer(Code.OK, Appended(tail=tail, since=tail, outcomes=tuple(found)))
        stored = _together(parts, tail)
        new = [entry for part in parts[:stored] for entry in part.entries]
        if beyond := self._beyond([tail + len(new) - 1]):
            return beyond
        placed = [replace(entry, position=p) for p, entry in enumerate(new, tail)]
        assert self.write(epoch, placed, writer, timestamp, in_block) == WRITTEN
        self.appenders[writer] = max(number, new[-1].number), self.tail - 1
        return Answer(Code.OK, Appended(tail=self.tail, since=self.tail, stored=stored))

    def append_as_host(self, found: Answer, *arguments: Any) -> Answer:
        """What a host that answered `found` should have answered to an append.

        It may have forgotten the ids of entries that were trimmed, and an entry in a block has to
        be compared by its client.
        """
        _, parts, writer, since, _, in_block = arguments
        if found.code == Code.SAME_ID:
            number = self.ids[found.value][1]
            (entry,) = (e for part in parts for e in part.entries if e.number == number)
            assert self._is_own(self.ids, replace(entry, position=found.value), writer)
            assert in_block or self.blocks[found.value]
            return found
        reported = found.value.outcomes if found.code == Code.OK else ()
        copies = [
            range(position, position + len(part.entries))
            for part, (state, position) in zip(parts, reported, strict=False)
            if state == PartState.APPENDED
        ]
        known = {position for copy in copies for position in copy}
        for forgotten in ((), self.freed.keys() - known):
            before = deepcopy(self) if self.freed else self
            expected = self._append(forgotten, *arguments)
            if expected == found or not before.freed:
                break
            vars(self).update(vars(before))
        else:
            expected = self._append(self.freed.keys() - known, *arguments)
        if expected.code == found.code == Code.BELOW_TRIM_POINT:
            assert since < found.value
            assert self.cell(found.value - 1) == TRIMMED
            return found
        return expected

    def _copy_of(
        self, part: AppendPart, writer: bytes, ids: Mapping[int, tuple[bytes, int]], where: range
    ) -> int | None:
        """Where an earlier copy of a part is."""
        for first in where[: len(where) + 1 - len(part.entries)]:
            copy = (replace(entry, position=p) for p, entry in enumerate(part.entries, first))
            if all(self._is_own(ids, entry, writer) for entry in copy):
                return first
        return None

    def _conflict(self, part: AppendPart, tail: int, alone: bool) -> int | None:
        """The first position that conflicts with a part's condition."""
        if part.expect is not None and (part.expect < tail or (alone and part.expect != tail)):
            return tail
        if part.unless and part.start > tail:
            return tail
        if part.unless and 0 < part.start < self.trim_point:
            return self.trim_point - 1
        for position in range(max(part.start, self.start or 0, self.trim_point), tail):
            slot = self.cell(position)
            fits = any(slot.tags.issuperset(tags) for tags in part.unless)
            if part.unless and (slot == UNWRITTEN or (slot.state == State.WRITTEN and fits)):
                return position
        return None


def _together(parts: Sequence[AppendPart], tail: int) -> int:
    """How many leading parts do not conflict with earlier ones."""
    seen: list[tuple[int, frozenset[bytes]]] = []
    for i, part in enumerate(parts):
        wrong = part.expect is not None and part.expect != tail + len(seen)
        for position, tags in seen:
            fits = any(tags.issuperset(each) for each in part.unless)
            wrong |= position >= part.start and fits
        if wrong:
            return i
        seen += [(tail + len(seen) + j, frozenset(e.tags)) for j, e in enumerate(part.entries)]
    return len(parts)


def _valid_append(
    parts: Sequence[AppendPart], entries: Sequence[Entry], crcs: Sequence[int] | None
) -> bool:
    sets = [tags for part in parts for tags in part.unless]
    ascending = all(a.number < b.number for a, b in pairwise(entries))
    intact = crcs is None or list(crcs) == [crc32c(entry.data) for entry in entries]
    return ascending and intact and all(sets) and all(len(part.unless) <= 32 for part in parts)
