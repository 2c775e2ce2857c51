"""Types of arguments and options, and options that several commands have."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

import zlog
from zlog.cli.units import size
from zlog.limits import (
    COMPRESSIONS,
    ENTRY_BYTES_MAX,
    HOLE_TIMEOUT_SECONDS,
    ORDERINGS,
    POSITION_MAX,
    STRIPE_UNIT_MAX,
    WIDTH_MAX,
)
from zlog.names import check_pattern
from zlog.view import check_stripe_unit

F = TypeVar("F", bound=Callable[..., Any])

NEVER = math.inf
"""The timeout 'never'."""


def seconds(word: str | float) -> float:
    """Parse a number of seconds, or ``never``."""
    try:
        number = NEVER if word == "never" else float(word)
    except ValueError:
        number = math.nan
    if not number >= 0:
        raise click.BadParameter(
            f"{word!r} is not a time limit: give seconds, 0 or more, or 'never'"
        )
    return number


def call_seconds(word: str | float) -> float:
    """Parse the timeout of a call, which must not be zero."""
    number = seconds(word)
    if not number:
        raise click.BadParameter(
            "0 leaves no time for an answer: give more seconds, or 'never' for no limit"
        )
    return number


def or_none(span: float) -> float | None:
    """Return a timeout for the library: None for never."""
    return None if span == NEVER else span


class FiniteRange(click.FloatRange):
    """A range of numbers without NaN and infinity."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number if it is finite."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


def number_option(name: str, default: int, least: int, most: int, text: str) -> Callable[[F], F]:
    """Return an option for an integer in a range."""
    kind = click.IntRange(least, most)
    return click.option(name, type=kind, default=default, show_default=True, metavar="N", help=text)


def seconds_option(
    name: str, default: float, least: float, most: float | None, text: str
) -> Callable[[F], F]:
    """Return an option for a number of seconds in a range."""
    kind = FiniteRange(least, most)
    return click.option(
        name, type=kind, default=default, show_default=True, metavar="SECONDS", help=text
    )


def entry_size(word: str | int) -> int:
    """Parse the size limit of an entry."""
    count = size(word)
    if not 0 < count <= ENTRY_BYTES_MAX:
        limit = f"{ENTRY_BYTES_MAX >> 20}M"
        raise click.BadParameter(f"{word} is out of range: an entry must have 1 byte to {limit}")
    return count


class _Position(click.IntRange):
    name = "position"


POSITION = _Position(min=0, max=POSITION_MAX)


FILE = click.Path(exists=True, dir_okay=False)


def pattern(word: str) -> str:
    """Parse a pattern for the names of logs."""
    try:
        return check_pattern(word)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


match_option = click.option(
    "--match",
    type=pattern,
    default="*",
    metavar="PATTERN",
    help="Include only logs whose name matches this pattern, such as 'orders-*'.",
)


def interval_option(default: float, text: str) -> Callable[[F], F]:
    """Return ``--interval``, for commands that show logs."""
    return seconds_option("--interval", default, 0.1, None, text)


def listen_option(default: str, text: str) -> Callable[[F], F]:
    """Return ``--listen``, for commands that serve."""
    text += " Port 0 selects a free port."
    return click.option(
        "--listen", default=default, show_default=True, metavar="HOST:PORT", help=text
    )


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds several options."""

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


tls_options = together(
    click.option("--tls-cert", type=FILE, help="Use TLS, with this certificate (PEM)."),
    click.option(
        "--tls-key",
        type=FILE,
        help="Private key of the certificate (PEM).  [default: in the file of the certificate]",
    ),
)
"""The options of commands that serve over TLS."""


spool_option = click.option(
    "--spool",
    "spools",
    multiple=True,
    metavar="DIR",
    type=click.Path(),
    help="Include the spool in this directory; may be repeated.",
)
"""``--spool`` of commands that show the state of spools."""


def json_option(text: str) -> Callable[[F], F]:
    """Return ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def width_option(text: str, default: int | None = None) -> Callable[[F], F]:
    """Return ``--width``."""
    return click.option(
        "--width",
        type=click.IntRange(1, WIDTH_MAX),
        default=default,
        show_default=default is not None,
        help=text,
    )


def stripe_unit_option(text: str, default: int | None = None) -> Callable[[F], F]:
    """Return ``--stripe-unit``."""
    return click.option(
        "--stripe-unit",
        type=_unit,
        default=default,
        show_default=default is not None,
        metavar="N",
        help=text,
    )


def _unit(word: str | int) -> int:
    """Parse the number of consecutive positions per object: a power of two."""
    try:
        number = int(word)
        check_stripe_unit(number)
    except ValueError:
        limit = f"{STRIPE_UNIT_MAX:,}"
        raise click.BadParameter(f"{word} is not a power of two from 1 to {limit}") from None
    return number


def key_values(
    _ctx: click.Context, _param: click.Parameter, words: tuple[str, ...]
) -> dict[str, str]:
    """Parse the values of an option for ``KEY=VALUE``."""
    options = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{word!r} is not KEY=VALUE")
        options[key] = value
    return options


settings_option = click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    callback=key_values,
    help="Store a setting with the log, for its users; may be repeated.",
)


def _some_bytes(word: str | int) -> int:
    found = size(word)
    if found < 1:
        raise click.BadParameter(f"{word} is too small: a stripe object must hold at least 1 byte")
    return found


def _hole_timeout(text: str) -> Callable[[F], F]:
    """Return ``--hole-timeout``, which passes None for never, and ``...`` if it is not given."""

    def wanted(_ctx: click.Context, _param: click.Parameter, span: float | None) -> zlog.Timeout:
        return ... if span is None else or_none(span)

    return click.option(
        "--hole-timeout", type=seconds, metavar="SECONDS", callback=wanted, help=text
    )


stripe_options = together(
    click.option(
        "--ordering",
        type=click.Choice(ORDERINGS),
        help="What assigns positions: a sequencer, or the only object of the live stripe. With"
        " 'object', the width is 1.  [default: sequencer]",
    ),
    click.option(
        "--stripe-bytes",
        type=_some_bytes,
        metavar="SIZE",
        help="Start a new stripe once an object of the live stripe holds this much data, such as"
        " 64M.  [default: 96M]",
    ),
    click.option(
        "--stripe-records",
        type=click.IntRange(1),
        metavar="N",
        help="Start a new stripe once an object of the live stripe holds this many records (omap"
        " keys).  [default: 100000]",
    ),
    click.option(
        "--compression",
        type=click.Choice(COMPRESSIONS),
        help="Writers compress the entries of a batch together if this makes them smaller."
        "  [default: none]",
    ),
    _hole_timeout(
        "Readers wait this long for an unwritten position, then fill it. 'never' does not fill it."
        f"  [default: {HOLE_TIMEOUT_SECONDS:g}]"
    ),
    click.option(
        "--entry-bytes-max",
        type=entry_size,
        metavar="SIZE",
        help="Size limit of an entry, up to 16M.  [default: 1M]",
    ),
)
"""The options of a log, which have the names of arguments of :meth:`zlog.Log.create`."""

hole_timeout_option = _hole_timeout(
    "Wait this long for an unwritten position below the tail, then fill it. 'never' does not fill"
    " it.  [default: the log's]"
)
