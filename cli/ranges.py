r"""Which positions: ``5``, ``5:10``, ``-10:``, ``earliest``, ``@5m``, ``@2026-11-20T10:00:@5m``.

As in a slice the first position is part of the range and the end is not, and a negative number
counts back from the tail. A time stands for the first position that is not older.
"""

from __future__ import annotations

import enum
import re
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

import click

from zlog import Log
from zlog.cli.units import SPAN, time_span


class End(enum.Enum):
    """A log's ends, in words."""

    EARLIEST = "earliest"
    """The first position that is not trimmed."""
    LATEST = "latest"
    """The tail."""


Place = int | End | datetime
"""A position (negative: back from the tail), an end of the log, or a time."""

_MOMENT = (
    r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?"
)
_PLACE = rf"-?\d+|earliest|latest|@(?:{_MOMENT}|{SPAN})"
_RANGE = re.compile(rf"({_PLACE})?(?:(:)({_PLACE})?)?", re.ASCII)

PLACES = "a position, a negative one (counts back from the tail), earliest, latest, @5m or @TIME"


class Range(NamedTuple):
    """Some positions of a log.

    Attributes:
        start: the first one.
        end: one past the last; None for the tail.
        single: one position was named, and there has to be an entry.
    """

    start: Place
    end: Place | None
    single: bool = False

    def resolve(self, log: Log, tail: int) -> tuple[int, int]:
        """Return the range in positions, as seen when the tail was there; no end lies beyond it."""
        end = tail if self.end is None else min(resolve(log, self.end, tail), tail)
        return resolve(log, self.start, tail), end


EVERYTHING = Range(0, None)


def resolve(log: Log, place: Place, tail: int) -> int:
    """Return a place as a position, as seen when the tail was there.

    What would be before the first position is the first one, as in a slice.
    """
    if isinstance(place, datetime):
        return log.find_time(place)
    if place is End.EARLIEST:
        return log.earliest()
    if place is End.LATEST:
        return tail
    return place if place >= 0 else max(0, tail + place)


def parse(word: str) -> Range:
    """Read a range from the command line. A time or an end alone begins one."""
    found = _RANGE.fullmatch(word)
    if found is None or not word:
        if word.startswith("-"):
            # The verb lets unknown options through, for the sake of ranges such as -10:.
            raise click.NoSuchOption(word)
        raise click.BadParameter(
            f"{word!r} is no range: write 5, 5:10, 5:, :10, -10:, earliest, @5m or @10m:@5m"
        )
    start, colon, end = found.groups()
    first = 0 if start is None else _place(start)
    if colon is None:
        return Range(first, None, single=isinstance(first, int))
    return Range(first, None if end is None else _place(end))


def place(word: str) -> Place:
    """Read one place from the command line."""
    if not re.fullmatch(_PLACE, word, re.ASCII):
        raise click.BadParameter(f"{word!r} is no place in a log: write {PLACES}")
    return _place(word)


def _place(word: str) -> Place:
    if word in ("earliest", "latest"):
        return End(word)
    if not word.startswith("@"):
        position = int(word)
        if position >= 2**63:
            raise click.BadParameter(f"{word} is no position: they lie below 2^63")
        return position
    if re.fullmatch(SPAN, word[1:], re.ASCII):
        return datetime.now(timezone.utc) - timedelta(seconds=time_span(word[1:]))
    try:
        return _moment(word[1:])
    except ValueError as error:
        raise click.BadParameter(f"{word!r} is no time: {error}") from error


def _moment(word: str) -> datetime:
    """Read a time; without an offset it is UTC, and without a date today's.

    Python 3.10 reads neither ``Z`` nor an offset without a colon, nor one or two decimals.
    """
    if not re.match(r"\d{4}-", word):
        word = f"{datetime.now(timezone.utc).date().isoformat()}T{word}"
    word = re.sub(r"Z$", "+00:00", word)
    word = re.sub(r"(T.*[+-]\d\d)(\d\d)$", r"\1:\2", word)
    word = re.sub(r"\.(\d+)", lambda found: "." + found[1].ljust(6, "0"), word)
    moment = datetime.fromisoformat(word)
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment
