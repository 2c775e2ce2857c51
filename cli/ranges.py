r"""Positions and ranges: ``5``, ``5:10``, ``-10:``, ``earliest``, ``@5m``, ``@yesterday:@today``.

As in a Python slice, a range excludes its end, and a negative number counts back from the tail. A
time stands for the first position whose entry is not older.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from functools import partial

import click

import zlog
from zlog import Log
from zlog.cli.output import note, say
from zlog.cli.units import SPAN, time_span
from zlog.limits import POSITION_MAX

PositionSpec = zlog.PositionSpec | datetime
"""A number, which counts back from the tail if it is negative; an end of the log; or a time."""

_DAY = r"\d{4}-\d\d-\d\d|today|yesterday"
_CLOCK = r"\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?"
_MOMENT = re.compile(rf"(?:({_DAY})(?:[T ](?={_CLOCK})|$))?({_CLOCK})?", re.ASCII)
_SPEC = rf"-?\d+|earliest|latest|@(?:(?:{_DAY})(?:[T ]{_CLOCK})?|{_CLOCK}|{SPAN})"
_RANGE = re.compile(rf"({_SPEC})?(?:(:)({_SPEC})?)?", re.ASCII)

FORMS = "a position, a negative one (counts back from the tail), earliest, latest, @5m or @TIME"
"""The forms of a PositionSpec, for help texts."""


@dataclass(frozen=True)
class Range:
    """A range of positions.

    Attributes:
        start: the first position.
        end: one past the last position; None for the tail.
        single: whether the user gave a single position, which must hold an entry.
        word: the range as the user wrote it.
    """

    start: PositionSpec
    end: PositionSpec | None
    single: bool = False
    word: str = field(default="", compare=False)

    def resolve(self, log: Log, tail: int) -> tuple[int, int]:
        """Return the positions of the range, which ends at the tail at most."""
        start = resolve(log, self.start, tail)
        end = tail if self.end is None else resolve(log, self.end, tail)
        if self.end is not None and end < start:
            say(f"range {self.word} is empty: it ends before it begins")
        elif start > tail:
            say(f"range {self.word} is empty: the tail is {tail}")
        elif min(end, tail) == start and self.word:
            note(f"range {self.word} is empty so far")
        return start, min(end, tail)


EVERYTHING = Range(0, None)


def resolve(log: Log, spec: PositionSpec, tail: int) -> int:
    """Return the position of a spec. As in a slice, negative results become 0."""
    if isinstance(spec, datetime):
        return log.find_time(spec)
    if spec == "earliest":
        return log.earliest()
    if spec == "latest":
        return tail
    return spec if spec >= 0 else max(0, tail + spec)


def beginning(log: Log, spec: PositionSpec) -> zlog.PositionSpec:
    """Return the position for a new cursor. The cursor resolves the ends of a log itself."""
    return spec if isinstance(spec, str) else resolve(log, spec, log.tail())


def parse(word: str) -> Range:
    """Parse a range. A single time or end is the start of a range."""
    word = word.strip()
    found = _RANGE.fullmatch(word)
    if found is None or not word:
        raise click.BadParameter(
            f"{word!r} is not a range: write 5, 5:10, 5:, :10, -10:, earliest, latest,"
            " @5m, @10m:@5m, @10:00, @today or @2026-11-20"
        )
    start, colon, end = found.groups()
    first = 0 if start is None else _spec(start)
    if colon is None:
        return Range(first, None, single=isinstance(first, int), word=word)
    return Range(first, None if end is None else _spec(end), word=word)


def position_spec(word: str) -> PositionSpec:
    """Parse a position, an end or a time."""
    word = word.strip()
    if not re.fullmatch(_SPEC, word, re.ASCII):
        raise click.BadParameter(f"{word!r} is not a position: write {FORMS}")
    return _spec(word)


from_option = partial(
    click.option,
    "--from",
    "begin",
    type=position_spec,
    metavar="POSITION",
    help="Start at this position, or at earliest, latest, or a time such as @5m, as for"
    " `zlog read`.",
)
"""``--from``, for commands that read from a position on."""


def _spec(word: str) -> PositionSpec:
    if word == "earliest":
        return "earliest"
    if word == "latest":
        return "latest"
    if not word.startswith("@"):
        if len(word) > len(str(-POSITION_MAX)) or int(word) > POSITION_MAX:
            raise click.BadParameter(f"{word} is out of range: positions are below 2^63")
        return int(word)
    try:
        if re.fullmatch(SPAN, word[1:], re.ASCII):
            return utc_now() - timedelta(seconds=time_span(word[1:]))
        return _moment(word[1:])
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(f"{word!r} is not a time: {error}") from error


def _moment(word: str) -> datetime:
    """Parse a time: UTC unless it has an offset, today without a date, midnight without a clock."""
    found = _MOMENT.fullmatch(word)
    assert found is not None
    day, clock = found.groups()
    return datetime.combine(_date(day), _time(clock or "00:00")).astimezone(timezone.utc)


def _date(word: str | None) -> date:
    today = utc_now().date()
    named = {None: today, "today": today, "yesterday": today - timedelta(days=1)}
    return named.get(word) or date.fromisoformat(str(word))


def _time(word: str) -> time:
    """Parse a time of day in all forms. Python 3.10 lacks ``Z``, ``+0100`` and single decimals."""
    word = re.sub(r"Z$", "+00:00", word)
    word = re.sub(r"([+-]\d\d)(\d\d)$", r"\1:\2", word)
    word = re.sub(r"\.(\d+)", lambda found: "." + found[1].ljust(6, "0"), word)
    clock = time.fromisoformat(word)
    return clock.replace(tzinfo=timezone.utc) if clock.tzinfo is None else clock


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(timezone.utc)
