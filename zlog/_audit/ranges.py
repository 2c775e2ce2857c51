"""Joins single positions that an audit found into findings about ranges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from zlog._audit.findings import Finding, FindingKind, at
from zlog._base.striping import Striping
from zlog._native.audit import AppendId
from zlog.view import ObjectRef

_HOLES_MAX = 1 << 16
_HOLES_APART = 1024
"""Holes that are at most this far apart are checked together."""

_SEARCHED_MAX = 1 << 16


class Window(NamedTuple):
    """Positions ``[start, end)`` of one stripe, with its objects."""

    refs: Sequence[ObjectRef]
    start: int
    end: int

    @property
    def striping(self) -> Striping:
        """The mapping of positions to objects."""
        return self.refs[0].striping

    def ref(self, position: int) -> ObjectRef:
        """Return the object that holds a position."""
        return self.refs[self.striping.number(position)]

    def parts(self) -> list[tuple[ObjectRef, int]]:
        """Return each object with its first position."""
        parts = self.striping.by_object(self.start, self.end)
        return [(self.refs[part.number], part.start) for part in parts]


class BadRows:
    """Lost, unreadable or forged positions, by object."""

    def __init__(self, kind: FindingKind, detail: str) -> None:
        self._kind = kind
        self._detail = detail
        self._open: dict[ObjectRef, range] = {}

    def take(self, window: Window, rows: Iterable[range]) -> list[Finding]:
        """Add the rows of a window. Returns findings about the rows that have ended."""
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
        """Return findings about the remaining rows."""
        return [self._finding(ref, row) for ref, row in self._open.items()]

    def _finding(self, ref: ObjectRef, row: range) -> Finding:
        return at(self._kind, ref, row, self._detail)


class Holes:
    """Collects holes in ascending order, and joins consecutive holes of a stripe.

    Attributes:
        seen: when the last hole was found.
    """

    def __init__(self) -> None:
        self._holes: list[Window] = []
        self.seen = 0.0

    def __bool__(self) -> bool:
        return bool(self._holes)

    @property
    def full(self) -> bool:
        """Whether it is time to call :meth:`drain`."""
        return len(self._holes) >= _HOLES_MAX

    def take(self, window: Window, rows: Iterable[range], now: float) -> None:
        """Add the rows of a window."""
        for row in rows:
            self.seen = now
            last = self._holes[-1] if self._holes else None
            if last is not None and last.end == row.start and last.refs is window.refs:
                self._holes[-1] = last._replace(end=row.stop)
            else:
                self._holes.append(Window(window.refs, row.start, row.stop))

    def drain(self, positions_max: int) -> Iterator[Window]:
        """Remove the holes, and return windows that contain them."""
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
        """Return the findings. Equidistant single holes in one object become one finding."""
        rows: list[tuple[ObjectRef, range]] = []
        singles: dict[ObjectRef, int] = {}  # for each object, the index of its last one in `rows`
        for hole in self._holes:
            ref, step = hole.ref(hole.start), hole.striping.step
            if hole.end - hole.start > 1:
                rows.append((ref, range(hole.start, hole.end)))
                continue
            known = singles.get(ref)
            if known is not None and (row := rows[known][1]).start + len(row) * step == hole.start:
                rows[known] = ref, range(row.start, hole.start + 1, step)
            else:
                singles[ref] = len(rows)
                rows.append((ref, range(hole.start, hole.end)))
        return [at(FindingKind.HOLE, ref, row, "granted, but not written") for ref, row in rows]


class Doubles:
    """Finds appends that are stored at more than one position.

    A first walk over the log finds the appends that occur more than once. A second walk finds all
    positions of these appends.

    Attributes:
        searched: the appends that the second walk looks for.
    """

    def __init__(self) -> None:
        self.searched: set[AppendId] = set()
        self._first: dict[AppendId, int] = {}

    def take(self, window: Window, found: Iterable[tuple[AppendId, int]]) -> list[Finding]:
        """Note which appends of a window also occur at a lower position.

        The number of noted appends is limited. Appends beyond the limit are returned as findings.
        """
        findings: list[Finding] = []
        for append, position in found:
            if len(self.searched) < _SEARCHED_MAX or append in self.searched:
                self.searched.add(append)
            else:
                detail = "the same append is also stored at a lower position"
                findings.append(_doubled(window, range(position, position + 1), detail))
        return findings

    def compare(self, window: Window, found: Iterable[tuple[AppendId, int]]) -> list[Finding]:
        """Add the positions of appends in a window. Returns findings about second positions."""
        rows: list[tuple[range, range]] = []  # positions, and lower positions of the same appends
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
        return f"the same append is stored at position {positions[0]}"
    return f"the same appends are stored at positions {positions[0]} to {positions[-1]}"
