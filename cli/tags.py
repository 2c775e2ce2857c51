"""Options for the tags of entries, and for selecting entries by tags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

import click

from zlog import InvalidTag, Match
from zlog.cli.parameters import together
from zlog.names import check_tags

F = TypeVar("F", bound=Callable[..., Any])


class Selected(TypedDict):
    """Arguments of :meth:`zlog.Log.read_range` that select entries."""

    tags: tuple[str, ...] | None
    match: Match


def selected(tags: tuple[str, ...], match: Match | None) -> Selected:
    """Return the selection from the options of :func:`selecting_options`."""
    if match is not None and not tags:
        raise click.UsageError("--match needs --tag")
    return {"tags": tags or None, "match": match or "any"}


def tag_option(help: str, name: str = "--tag", passes: str = "tags") -> Callable[[F], F]:
    """Return an option for tags, which may be repeated and passes ``passes``."""
    return click.option(name, passes, multiple=True, metavar="TAG", callback=_checked, help=help)


def _checked(_: click.Context, __: click.Parameter, tags: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return check_tags(tags)
    except InvalidTag as error:
        raise click.BadParameter(str(error)) from error


selecting_options = together(
    tag_option("Select entries with this tag; may be repeated."),
    click.option(
        "--match",
        type=click.Choice(["any", "all"]),
        help="With several --tag, select entries with any or all of the tags.  [default: any]",
    ),
)
"""The options that select entries. They pass ``tags`` and ``match``."""
