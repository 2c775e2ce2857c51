"""The command objects watch: every change of an object, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from zlog.cli.command import Command
from zlog.cli.commands.objects.spaces import OBJECT_NAME, open_space, space_option
from zlog.cli.commands.objects.values import json_of, prefix_option
from zlog.cli.names import log_argument
from zlog.cli.output import Output, escaped
from zlog.cli.parameters import POSITION, json_option
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session

if TYPE_CHECKING:
    from zlog.objects import Change


@click.command(
    cls=Command,
    examples="""
    zlog objects watch app limits
    zlog objects watch app limits --prefix web/ --json
    zlog objects watch app limits requests --from 18   # changes after position 17
    zlog objects watch app limits requests -c 1        # wait for the next change
    """,
)
@log_argument
@click.argument("name", metavar="OBJECT", type=OBJECT_NAME)
@click.argument("key", metavar="[KEY]", required=False)
@prefix_option
@click.option(
    "--from",
    "start",
    type=POSITION,
    metavar="POSITION",
    help="Start with the changes of this entry.  [default: the next change]",
)
@click.option(
    "-c",
    "--count",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop after the entry with the Nth change.",
)
@space_option
@json_option("Print JSON lines.")
@pass_session
def watch(
    session: Session,
    log: str,
    name: str,
    key: str | None,
    prefix: str | None,
    start: int | None,
    count: int | None,
    space: str,
    as_json: bool,
) -> None:
    """Print each change of an object, until stopped.

    Each line shows the position of the change, the key if the object is a map or set, and the new
    value as JSON or `deleted`. To resume later, use --from with the last printed position plus 1.
    """
    if key is not None and prefix is not None:
        raise click.UsageError("KEY and --prefix cannot be combined")
    show = _as_json if as_json else _as_text
    with open_space(session, log, space) as opened, Output() as out:
        printed = 0
        for event in opened.watch(name, key=key, prefix=prefix, start=start):
            for change in event.changes:
                out.line(show(event.position, change))
            printed += len(event.changes)
            if count is not None and printed >= count:
                return
            out.flush()


def _as_json(position: int, change: Change) -> str:
    fields: dict[str, object] = {"position": position}
    if change.key is not None:
        fields["key"] = change.key
    fields |= {"deleted": True} if change.deleted else {"value": json_of(change.value)}
    return to_json(fields)


def _as_text(position: int, change: Change) -> str:
    key = [] if change.key is None else [escaped(change.key)]
    value = "deleted" if change.deleted else to_json(json_of(change.value))
    return "  ".join([str(position), *key, value])
