"""The distribution of a stripe's positions over its objects (cls_zlog/base/spacing.h)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, overload

_SHIFT_AT: Final = 16


class Spacing(NamedTuple):
    """The distribution of positions over a stripe's objects.

    The objects take turns. In each turn an object has ``unit`` consecutive positions, so position p
    is in the object with the number ``p // unit % width``.

    Attributes:
        width: number of objects.
        unit: a power of two.
    """

    width: int
    unit: int = 1

    @property
    def packed(self) -> int:
        """Both in the one number of requests (docs/formats/wire.md)."""
        return self.width | (self.unit.bit_length() - 1) << _SHIFT_AT

    @property
    def step(self) -> int:
        """The step between positions of an object, in a finding."""
        return self.width if self.unit == 1 else 1

    def number(self, position: int) -> int:
        """Return the number of the object of a position."""
        return position // self.unit % self.width

    def place(self, position: int) -> int:
        """Return the number of positions of its object below a position."""
        return position // (self.unit * self.width) * self.unit + position % self.unit

    def after(self, position: int, count: int = 1) -> int:
        """Return the position of the same object that is ``count`` positions later."""
        turns, place = divmod(position % self.unit + count, self.unit)
        return position - position % self.unit + turns * self.unit * self.width + place

    def first_at(self, position: int, number: int) -> int:
        """Return the first position of an object at or above a position."""
        begin = (position // self.unit // self.width * self.width + number) * self.unit
        if position < begin + self.unit:
            return max(position, begin)
        return begin + self.unit * self.width

    def places(self, start: int, stop: int, number: int) -> Places:
        """Return the positions of an object in ``[start, stop)``."""
        return Places(self, self.first_at(start, number), stop)

    def parts(self, start: int, stop: int) -> list[Places]:
        """Return the positions of ``[start, stop)`` by object, without objects that have none."""
        firsts = [start]
        while len(firsts) < self.width:
            firsts.append((firsts[-1] // self.unit + 1) * self.unit)
        return [Places(self, first, stop) for first in firsts if first < stop]


class Places(Sequence[int]):
    """Consecutive positions of a stripe object, as a sequence.

    Attributes:
        start: the first position, unless there is none.
        stop: a position above the last one.
    """

    __slots__ = ("_count", "spacing", "start", "stop")

    def __init__(self, spacing: Spacing, start: int, stop: int) -> None:
        self.spacing = spacing
        self.start = start
        self.stop = stop
        self._count = 0
        if start < stop:
            end = spacing.first_at(stop, spacing.number(start))
            self._count = spacing.place(end) - spacing.place(start)

    @property
    def number(self) -> int:
        """The number of the object."""
        return self.spacing.number(self.start)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> Places: ...
    def __getitem__(self, at: int | slice) -> int | Places:
        if isinstance(at, slice):
            first, last, step = at.indices(self._count)
            if step != 1:
                raise ValueError("positions of an object are cut in a row, not in steps")
            stop = self.stop if last == self._count else self.spacing.after(self.start, last)
            return Places(self.spacing, self.spacing.after(self.start, first), stop)
        if not -self._count <= at < self._count:
            raise IndexError(f"item {at} of {self._count}")
        return self.spacing.after(self.start, at % self._count)

    def __iter__(self) -> Iterator[int]:
        if self.spacing.unit == 1:
            return iter(range(self.start, self.stop, self.spacing.width))
        return self._by_units()

    def _by_units(self) -> Iterator[int]:
        spacing, left, at = self.spacing, self._count, self.start
        while left:
            in_unit = min(left, spacing.unit - at % spacing.unit)
            yield from range(at, at + in_unit)
            at, left = spacing.after(at, in_unit), left - in_unit

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Places) and (self.spacing, *self) == (other.spacing, *other)

    def __repr__(self) -> str:
        return f"Places({self.spacing}, {self.start}, {self.stop})"
