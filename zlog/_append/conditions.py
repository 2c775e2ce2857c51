"""The conditions of appends, and the errors of appends whose condition does not hold."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from zlog._base.names import check_position
from zlog._base.wanted import Wanted
from zlog._native.new_entries import tags_checked
from zlog.entry import Entry, Gap, GapKind
from zlog.errors import Conflict
from zlog.limits import UNLESS_SETS_MAX


class Condition(NamedTuple):
    """What must be true at the position of an append.

    Attributes:
        expect: the position that the first entry must get; None if any will do.
        unless: sets of tags. The append conflicts with entries that have all tags of a set.
        start: the append conflicts only with entries at or above this position.
    """

    expect: int | None = None
    unless: tuple[tuple[str, ...], ...] = ()
    start: int = 0

    @classmethod
    def of(
        cls, expect: int | None, unless: Iterable[Collection[str]], after: int | None
    ) -> Condition:
        """Check the condition that a caller passed.

        Raises:
            InvalidTag: a tag is empty or too long, or there are too many of them.
            TypeError: ``unless`` is a single set of tags.
            ValueError: a position is invalid, a set is empty, or there are too many sets.
        """
        after = None if after == -1 else after  # the position before an empty log's tail
        for position in (expect, after):
            if position is not None:
                check_position(position)
        unless = [unless] if isinstance(unless, (str, bytes)) else [*unless]
        if any(isinstance(tags, (str, bytes)) for tags in unless):
            raise TypeError("unless takes a list of sets of tags, such as [('course.7', 'full')]")
        sets = tuple(tags_checked(tags) for tags in unless)
        if not all(sets):
            raise ValueError("each set of tags in unless needs at least one tag")
        if len(sets) > UNLESS_SETS_MAX:
            raise ValueError(f"unless takes up to {UNLESS_SETS_MAX} sets of tags, not {len(sets)}")
        if after is not None and not sets:
            raise ValueError("after limits unless, so give both")
        return cls(expect, sets, 0 if after is None else after + 1)

    def wanted(self) -> list[Wanted]:
        """Return the searches that find the conflicting entries. One serves all single tags."""
        single = tuple({tags[0] for tags in self.unless if len(tags) == 1})
        several = [Wanted(tags, every=True) for tags in self.unless if len(tags) > 1]
        return [Wanted(single, every=False), *several] if single else several


ALWAYS = Condition()


def conflict_with(log: str, entry: Entry) -> Conflict:
    tags = f"the tag{'s' * (len(entry.tags) > 1)} {', '.join(entry.tags)}"
    return Conflict(
        f"log {log!r} has an entry with {tags} at position {entry.position}",
        position=entry.position,
        tags=entry.tags,
    )


def conflict_with_gap(log: str, gap: Gap, position: int) -> Conflict:
    hint = None
    if gap.kind is GapKind.TRIMMED:
        hint = "Read the log from its trim point on, and pass the last position that you have read."
    return Conflict(
        f"log {log!r}: position {position}, which is {gap.kind.value}, may have had an entry that"
        " conflicts",
        position=position,
        hint=hint,
    )
