"""Where an audit finds something: single positions, put together to rows and told as findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from zlog._audit.findings import Finding, FindingKind, at
from zlog._base.striping import Spacing
from zlog._native.audit import AppendId
from zlog.view import ObjectRef

_HOLES_MAX = 1 << 16
_HOLES_APART = 1024
"""Holes no further apart are looked at in one go."""

_SEARCHED_MAX = 1 << 16


class Window(NamedTuple):
    """Positions ``[start, end)`` of one stripe, which has these objects."""

    refs: Sequence[ObjectRef]
    start: int
    end: int

    @property
    def spacing(self) -> Spacing:
        """Which object has which position."""
        return self.refs[0].spacing

    def ref(self, position: int) -> ObjectRef:
        """Return the object that holds a position."""
        return self.refs[self.spacing.number(position)]

    def parts(self) -> list[tuple[ObjectRef, int]]:
        """Return each object with its first position."""
        parts = self.spacing.parts(self.start, self.end)
        return [(self.refs[part.number], part.start) for part in parts]


class BadRows:
    """Lost or unreadable positions, by object: a record has those side by side in one object."""

    def __init__(self, kind: FindingKind, detail: str) -> None:
        self._kind = kind
        self._detail = detail
        self._open: dict[ObjectRef, range] = {}

    def take(self, window: Window, rows: Iterable[range]) -> list[Finding]:
        """Take in a window's rows. Returns those that have ended."""
        ended: list[Finding] = []
        for row in rows:
            ref = window.ref(row.start)
            before = self._open.get(ref)
            if before is not None and before.stop == row.start:
                row = range(before.start, row.stop, row.step)
            elif before is not None:
                ended.append(self._finding(ref, before))
            self._open[ref] = row
        for ref, row in [*self._open.items()]:
            if row.stop < window.end or ref not in window.refs:
                ended.append(self._finding(ref, self._open.pop(ref)))
        return ended

    def end(self) -> list[Finding]:
        """Return those that go on to the end."""
        return [self._finding(ref, row) for ref, row in self._open.items()]

    def _finding(self, ref: ObjectRef, row: range) -> Finding:
        return at(self._kind, ref, row, self._detail)


class Holes:
    """Unwritten positions, in order; neighbours of one stripe are one.

    Attributes:
        seen: when the youngest of them was seen.
    """

    def __init__(self) -> None:
        self._holes: list[Window] = []
        self.seen = 0.0

    def __bool__(self) -> bool:
        return bool(self._holes)

    @property
    def full(self) -> bool:
        """Whether there are enough to be drained."""
        return len(self._holes) >= _HOLES_MAX

    def take(self, window: Window, rows: Iterable[range], now: float) -> None:
        """Take in a window's rows."""
        for row in rows:
            self.seen = now
            last = self._holes[-1] if self._holes else None
            if last is not None and last.end == row.start and last.refs is window.refs:
                self._holes[-1] = last._replace(end=row.stop)
            else:
                self._holes.append(Window(window.refs, row.start, row.stop))

    def drain(self, positions_max: int) -> Iterator[Window]:
        """Forget the holes, and return windows that have all of them in."""
        holes, self._holes = self._holes, []
        start = 0
        for i, hole in enumerate(holes):
            following = holes[i + 1] if i + 1 < len(holes) else None
            if (
                following is not None
                and following.refs is hole.refs
                and following.start - hole.end <= _HOLES_APART
            ):
                continue
            for position in range(holes[start].start, hole.end, positions_max):
                yield Window(hole.refs, position, min(position + positions_max, hole.end))
            start = i + 1

    def findings(self) -> list[Finding]:
        """Tell of all of them; single ones that follow each other in one object are one finding."""
        rows: list[tuple[ObjectRef, range]] = []
        singles: dict[ObjectRef, int] = {}  # where in `rows` the last one of an object is
        for hole in self._holes:
            ref, step = hole.ref(hole.start), hole.spacing.step
            if hole.end - hole.start > 1:
                rows.append((ref, range(hole.start, hole.end)))
                continue
            known = singles.get(ref)
            if known is not None and (row := rows[known][1]).stop == hole.start:
                rows[known] = ref, range(row.start, hole.start + step, step)
            else:
                singles[ref] = len(rows)
                rows.append((ref, range(hole.start, hole.start + step, step)))
        return [
            at(
                FindingKind.HOLE,
                ref,
                row if len(row) > 1 else range(row.start, row.start + 1),
                "handed out, not written",
            )
            for ref, row in rows
        ]


class Doubles:
    """Appends that stand at several positions.

    The audit learns only that it has met an append before; another walk finds where.

    Attributes:
        searched: the appends to look for.
    """

    def __init__(self) -> None:
        self.searched: set[AppendId] = set()
        self._first: dict[AppendId, int] = {}

    def take(self, window: Window, found: Iterable[tuple[AppendId, int]]) -> list[Finding]:
        """Take in a window's appends that were met before.

        Returns findings about those for which there is no room any more.
        """
        told: list[Finding] = []
        for append, position in found:
            if len(self.searched) < _SEARCHED_MAX or append in self.searched:
                self.searched.add(append)
            else:
                detail = "the same append stands at a lower position too"
                told.append(_doubled(window, range(position, position + 1), detail))
        return told

    def compare(self, window: Window, found: Iterable[tuple[AppendId, int]]) -> list[Finding]:
        """Take in where they stand in a window, and tell of those that stood further down."""
        rows: list[tuple[range, range]] = []  # positions, and those further down
        for append, position in found:
            first = self._first.setdefault(append, position)
            if first == position:
                continue
            here, there = rows[-1] if rows else (range(0), range(0))
            if rows and (here.stop, there.stop) == (position, first):
                rows[-1] = range(here.start, position + 1), range(there.start, first + 1)
            else:
                rows.append((range(position, position + 1), range(first, first + 1)))
        return [_doubled(window, here, _also_at(there)) for here, there in rows]


def _doubled(window: Window, positions: range, detail: str) -> Finding:
    return at(FindingKind.DUPLICATE, window.ref(positions[0]), positions, detail)


def _also_at(positions: range) -> str:
    if len(positions) == 1:
        return f"the same append stands at position {positions[0]}"
    return f"the same appends stand at positions {positions[0]} to {positions[-1]}"
