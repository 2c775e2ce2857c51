"""Types of arguments and options: each turns a word of the command line into a value."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from zlog.cli.units import size
from zlog.limits import (
    COMPRESSIONS,
    ENTRY_BYTES_MAX,
    HOLE_TIMEOUT_SECONDS,
    POSITION_MAX,
    UNIT_MAX,
    WIDTH_MAX,
)
from zlog.view import check_unit

F = TypeVar("F", bound=Callable[..., Any])

NEVER = math.inf
"""A time-out that does not come."""


def seconds(word: str | float) -> float:
    """Return a time span in seconds; ``never`` gives NEVER."""
    try:
        number = NEVER if word == "never" else float(word)
    except ValueError:
        number = math.nan
    if not number >= 0:
        raise click.BadParameter(f"{word!r} is neither a number of seconds nor 'never'")
    return number


def call_seconds(word: str | float) -> float:
    """Return how long a call may take: some time, or NEVER."""
    number = seconds(word)
    if not number:
        raise click.BadParameter(
            "0 leaves no time for an answer: give more seconds, or 'never' for no limit"
        )
    return number


def or_none(span: float) -> float | None:
    """Return a time-out as the library wants it: None for never."""
    return None if span == NEVER else span


class FiniteRange(click.FloatRange):
    """A range of numbers that refuses what is not a number, and infinity."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, checked."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


def entry_size(word: str | int) -> int:
    """Return how many bytes an entry may have: a size that the object class takes."""
    count = size(word)
    if not 0 < count <= ENTRY_BYTES_MAX:
        limit = f"{ENTRY_BYTES_MAX >> 20}M"
        raise click.BadParameter(f"{word} is out of range: an entry has 1 byte to {limit}")
    return count


def unit(word: str | int) -> int:
    """Return the positions in a row in a stripe object: a power of two."""
    try:
        number = int(word)
        check_unit(number)
    except ValueError:
        limit = f"{UNIT_MAX:,}"
        raise click.BadParameter(f"{word} is no power of two from 1 to {limit}") from None
    return number


class _Position(click.IntRange):
    name = "position"


POSITION = _Position(min=0, max=POSITION_MAX)


def json_option(text: str) -> Callable[[F], F]:
    """Give a command ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def width_option(text: str) -> Callable[[F], F]:
    """Give a command that may make a log ``--width``, with no default of its own."""
    return click.option("--width", type=click.IntRange(1, WIDTH_MAX), help=text)


def settings_option(text: str) -> Callable[[F], F]:
    """Make ``--option``, which may be given again."""
    return click.option(
        "--option",
        "options",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_option_pairs,
        help=text,
    )


def _option_pairs(
    _ctx: click.Context, _param: click.Parameter, words: tuple[str, ...]
) -> dict[str, str]:
    """Return the settings that were given as ``KEY=VALUE``."""
    options = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{word!r} is not KEY=VALUE")
        options[key] = value
    return options


def _some_bytes(word: str | int) -> int:
    found = size(word)
    if found < 1:
        raise click.BadParameter(f"{word} is too small: a stripe object holds 1 byte or more")
    return found


def stripe_options(command: F) -> F:
    """Give a command the options that say when a stripe is full, and how data is compressed."""
    compression = click.option(
        "--compression",
        type=click.Choice(COMPRESSIONS),
        help="Have writers compress what goes to one object at once, where that pays"
        " [default: none].",
    )
    records = click.option(
        "--stripe-records",
        type=click.IntRange(1),
        metavar="N",
        help="Start the next stripe when an object of the live one holds this many records, each an"
        " omap key [default: 100000].",
    )
    size_ = click.option(
        "--stripe-bytes",
        type=_some_bytes,
        metavar="SIZE",
        help="Start the next stripe when an object of the live one holds this many bytes: 64M"
        " [default: 96M].",
    )
    return size_(records(compression(command)))


def hole_timeout_option(command: F) -> F:
    """Give a command that reads ``--hole-timeout``."""
    return click.option(
        "--hole-timeout",
        type=seconds,
        default=HOLE_TIMEOUT_SECONDS,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for an unwritten position below the tail before filling it; 'never'"
        " leaves it unwritten.",
    )(command)
