r"""Which positions to read: ``5``, ``5:10``, ``5:``, ``:10``, ``-10:``, ``-1``.

As in a slice the first position is part of the range and the end is not, and a negative number
counts back from the tail.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import click

_RANGE = re.compile(r"(-?\d+)?(?:(:)(-?\d+)?)?", re.ASCII)


class Range(NamedTuple):
    """Some positions of a log; negative ones count back from its tail.

    Attributes:
        start: the first position.
        end: one past the last; None for the tail.
        single: one position was named, and there has to be an entry.
    """

    start: int
    end: int | None
    single: bool = False

    @property
    def relative(self) -> bool:
        """Whether the tail has to be known to tell which positions these are."""
        return self.start < 0 or (self.end is not None and self.end < 0)

    def resolve(self, tail: int) -> Range:
        """Return the range in positions, as seen when the tail was there.

        What would be before the first position begins there, as in a slice.
        """
        end = None if self.end is None else _absolute(self.end, tail)
        return Range(_absolute(self.start, tail), end, self.single)


def _absolute(position: int, tail: int) -> int:
    return position if position >= 0 else max(0, tail + position)


EVERYTHING = Range(0, None)


def parse(word: str) -> Range:
    """Read a range from the command line."""
    found = _RANGE.fullmatch(word)
    if found is None or not word:
        if word.startswith("-"):
            # The verb lets unknown options through, for the sake of ranges such as -10:.
            raise click.NoSuchOption(word)
        raise click.BadParameter(f"{word!r} is no range: write 5, 5:10, 5:, :10 or -10:")
    start, colon, end = found.groups()
    if colon is None:
        return Range(int(start), None, single=True)
    return Range(int(start or 0), None if end is None else int(end))
