"""How a stripe's positions are distributed over its objects (cls_zlog/base/striping.h)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, overload

_SHIFT_AT: Final = 16


class Striping(NamedTuple):
    """How positions are distributed over a stripe's objects.

    Each object in turn gets ``stripe_unit`` consecutive positions, so position p is in the object
    with the number ``p // stripe_unit % width``.

    Attributes:
        width: the number of objects.
        stripe_unit: a power of two.
    """

    width: int
    stripe_unit: int = 1

    @property
    def packed(self) -> int:
        """Return width and stripe unit in one number, as in requests (docs/formats/wire.md)."""
        return self.width | (self.stripe_unit.bit_length() - 1) << _SHIFT_AT

    @property
    def step(self) -> int:
        """The distance between positions of one object, as findings report it."""
        return self.width if self.stripe_unit == 1 else 1

    def number(self, position: int) -> int:
        """Return the number of the object that has a position."""
        return position // self.stripe_unit % self.width

    def rank(self, position: int) -> int:
        """Return how many positions of the same object are below a position."""
        return (
            position // (self.stripe_unit * self.width) * self.stripe_unit
            + position % self.stripe_unit
        )

    def after(self, position: int, count: int = 1) -> int:
        """Return the position that is ``count`` positions later in the same object."""
        turns, index = divmod(position % self.stripe_unit + count, self.stripe_unit)
        return (
            position - position % self.stripe_unit + turns * self.stripe_unit * self.width + index
        )

    def first_at(self, position: int, number: int) -> int:
        """Return an object's first position that is not below a given position."""
        begin = (
            position // self.stripe_unit // self.width * self.width + number
        ) * self.stripe_unit
        if position < begin + self.stripe_unit:
            return max(position, begin)
        return begin + self.stripe_unit * self.width

    def positions(self, start: int, stop: int, number: int) -> ObjectPositions:
        """Return the positions of an object in ``[start, stop)``."""
        return ObjectPositions(self, self.first_at(start, number), stop)

    def by_object(self, start: int, stop: int) -> list[ObjectPositions]:
        """Group the positions of ``[start, stop)`` by object, without objects that have none."""
        firsts = [start]
        while len(firsts) < self.width:
            firsts.append((firsts[-1] // self.stripe_unit + 1) * self.stripe_unit)
        return [ObjectPositions(self, first, stop) for first in firsts if first < stop]


class ObjectPositions(Sequence[int]):
    """The positions of a stripe object in a range, as a sequence.

    Attributes:
        start: the first position, if there is one.
        stop: all positions are below this one.
    """

    __slots__ = ("_count", "start", "stop", "striping")

    def __init__(self, striping: Striping, start: int, stop: int) -> None:
        self.striping = striping
        self.start = start
        self.stop = stop
        self._count = 0
        if start < stop:
            end = striping.first_at(stop, striping.number(start))
            self._count = striping.rank(end) - striping.rank(start)

    @property
    def number(self) -> int:
        """The number of the object."""
        return self.striping.number(self.start)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> ObjectPositions: ...
    def __getitem__(self, at: int | slice) -> int | ObjectPositions:
        if isinstance(at, slice):
            first, last, step = at.indices(self._count)
            if step != 1:
                raise ValueError("a slice of positions must have step 1")
            stop = self.stop if last == self._count else self.striping.after(self.start, last)
            return ObjectPositions(self.striping, self.striping.after(self.start, first), stop)
        if not -self._count <= at < self._count:
            raise IndexError(f"index {at} is out of range: there are {self._count} positions")
        return self.striping.after(self.start, at % self._count)

    def __iter__(self) -> Iterator[int]:
        if self.striping.stripe_unit == 1:
            return iter(range(self.start, self.stop, self.striping.width))
        return self._by_units()

    def _by_units(self) -> Iterator[int]:
        striping, left, at = self.striping, self._count, self.start
        while left:
            in_unit = min(left, striping.stripe_unit - at % striping.stripe_unit)
            yield from range(at, at + in_unit)
            at, left = striping.after(at, in_unit), left - in_unit

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPositions) and (self.striping, *self) == (
            other.striping,
            *other,
        )

    def __repr__(self) -> str:
        return f"ObjectPositions({self.striping}, {self.start}, {self.stop})"
