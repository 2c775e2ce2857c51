"""The command cursor: where the readers of a log resume."""

from __future__ import annotations

import click

from zlog import Log
from zlog.cli import ranges
from zlog.cli.command import CommandGroup, SignedCommand
from zlog.cli.names import CURSOR_NAME, pass_log
from zlog.cli.output import note
from zlog.cli.parameters import json_option
from zlog.cli.ranges import PositionSpec
from zlog.cli.tables import print_rows
from zlog.cli.template import iso


@click.group(
    cls=CommandGroup,
    examples="""
    zlog cursor ls orders
    zlog cursor set orders billing latest
    zlog cursor rm orders billing
    """,
)
def cursor() -> None:
    """Show and set a log's cursors, from which readers resume.

    A cursor stores the position that its reader, such as `zlog tail --cursor` or a program, reads
    next. A trim cannot pass a cursor unless you give --past-cursors, so remove the cursors of
    readers that no longer exist.
    """


@cursor.command(
    examples="""
    zlog cursor ls orders
    zlog cursor ls orders --json | jq .lag
    """,
)
@pass_log
@json_option("Print a JSON object per cursor.")
def ls(log: Log, as_json: bool) -> None:
    """List a log's cursors and their lag.

    The lag is the number of positions from the cursor to the tail.
    """
    cursors = log.cursors()
    tail = log.tail() if cursors else 0
    rows = [
        {
            "name": each.name,
            "position": each.position,
            "lag": max(0, tail - each.position),
            "created": iso(each.created),
            "updated": iso(each.updated),
        }
        for each in cursors
    ]
    head = {"name": "CURSOR", "position": "POSITION", "lag": "LAG", "updated": "COMMITTED"}
    print_rows(rows, head, as_json=as_json)


@cursor.command(
    "set",
    cls=SignedCommand,
    examples="""
    zlog cursor set orders billing earliest
    zlog cursor set orders billing 1000
    zlog cursor set orders billing @2h      # read the last two hours again
    """,
)
@pass_log
@click.argument("name", metavar="NAME", type=CURSOR_NAME)
@click.argument("position", metavar="POSITION", type=ranges.position_spec)
def set_(log: Log, name: str, position: PositionSpec) -> None:
    """Set a cursor to a position, or create it.

    POSITION is a number, earliest, latest, or a time as for `zlog read`. A negative number counts
    back from the tail. Stop the cursor's reader first: if you move the cursor ahead of a running
    reader, the reader's next commit fails.
    """
    begin = ranges.beginning(log, position)
    made = log.cursor(name, create=begin)
    made.reset(begin)
    note(f"cursor {name!r} is at {made.position}")


@cursor.command(examples="zlog cursor rm orders billing")
@pass_log
@click.argument("names", metavar="NAME...", nargs=-1, type=CURSOR_NAME, required=True)
def rm(log: Log, names: tuple[str, ...]) -> None:
    """Remove cursors, so that they no longer hold back trims."""
    for name in names:
        log.cursor(name).remove()
        note(f"removed cursor {name!r}")
