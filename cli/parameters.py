"""Types of arguments and options: each turns a word of the command line into a value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

import zlog
from zlog._append.append import ENTRY_BYTES_LIMIT
from zlog._base.names import check_cursor_name, check_log_name, check_source_name
from zlog._layout.options import check_options
from zlog._read.read import HOLE_TIMEOUT_SECONDS
from zlog.cli.session import Session
from zlog.cli.units import size

F = TypeVar("F", bound=Callable[..., Any])

NEVER = math.inf
"""A time-out that does not come."""

_COMPLETION_SECONDS = 2.0


def log_name(word: str) -> str:
    """Return the name of a log if it can be one."""
    return _checked(check_log_name, word)


def cursor_name(word: str) -> str:
    """Return the name of a cursor if it can be one."""
    return _checked(check_cursor_name, word)


def source_name(word: str) -> str:
    """Return the name of a source of deliveries if it can be one."""
    return _checked(check_source_name, word)


def _checked(check: Callable[[str], str], word: str) -> str:
    try:
        return check(word)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


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
            "0 leaves no time for any answer: give more seconds, or 'never' for no limit"
        )
    return number


def or_none(span: float) -> float | None:
    """Return a time-out as the library wants it: None for never."""
    return None if span == NEVER else span


def entry_size(word: str | int) -> int:
    """Return how many bytes an entry may have: a size that the object class takes."""
    count = size(word)
    if not 0 < count <= ENTRY_BYTES_LIMIT:
        limit = f"{ENTRY_BYTES_LIMIT >> 20}M"
        raise click.BadParameter(f"{word} is out of range: an entry has 1 byte to {limit}")
    return count


def complete_log(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the logs whose names begin so; none if the store does not answer soon."""
    session = replace(ctx.ensure_object(Session), timeout=_COMPLETION_SECONDS)
    try:
        with session.connect() as store:
            names = zlog.Log.list(store, timeout=_COMPLETION_SECONDS)
    except (zlog.ZlogError, click.ClickException, OSError):
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class _Position(click.IntRange):
    name = "position"


POSITION = _Position(min=0, max=2**63 - 1)


def log_argument(verb: F) -> F:
    """Give a verb its LOG."""
    return click.argument("log", metavar="LOG", type=log_name, shell_complete=complete_log)(verb)


def json_option(text: str) -> Callable[[F], F]:
    """Give a verb ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help=text)


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
    try:
        check_options(options)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return options


def _some_bytes(word: str | int) -> int:
    found = size(word)
    if found < 1:
        raise click.BadParameter(f"{word} is no size of anything")
    return found


def stripe_options(verb: F) -> F:
    """Give a verb the options that say when a stripe is full."""
    records = click.option(
        "--stripe-records",
        type=click.IntRange(1),
        metavar="N",
        help="The same for its records, each of them an omap key [default: 100000].",
    )
    size_ = click.option(
        "--stripe-bytes",
        type=_some_bytes,
        metavar="SIZE",
        help="Start the next stripe when an object of the live one holds so many bytes: 64M"
        " [default: 96M].",
    )
    return size_(records(verb))


def hole_timeout_option(verb: F) -> F:
    """Give a verb that reads ``--hole-timeout``."""
    return click.option(
        "--hole-timeout",
        type=seconds,
        default=HOLE_TIMEOUT_SECONDS,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for a position that was handed out and not written, before filling"
        " it; 'never' leaves it alone.",
    )(verb)
