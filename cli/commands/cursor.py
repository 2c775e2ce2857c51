"""The command cursor: where the readers of a log resume."""

from __future__ import annotations

import click

from zlog import CursorState
from zlog.cli import ranges
from zlog.cli.command import CommandGroup, SignedCommand
from zlog.cli.names import CURSOR_NAME, log_argument
from zlog.cli.output import Output, note
from zlog.cli.parameters import json_option
from zlog.cli.ranges import PositionSpec
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session
from zlog.cli.tables import table
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
    """Show and set the cursors of a log: where its readers resume.

    A cursor has a name and the position that its reader reads next. Readers are `zlog tail
    --cursor`, `zlog read --cursor`, and programs. A trim does not pass a cursor without
    --past-cursors: remove the cursors of readers that are gone.
    """


@cursor.command(
    examples="""
    zlog cursor ls orders
    zlog cursor ls orders --json | jq .lag
    """,
)
@log_argument
@json_option("Print a JSON object per cursor.")
@pass_session
def ls(session: Session, log: str, as_json: bool) -> None:
    """List a log's cursors and their lag.

    The lag is the number of positions from the cursor to the tail.
    """
    with session.open_log(log) as opened, Output() as out:
        cursors = opened.cursors()
        tail = opened.tail() if cursors else 0
        if as_json:
            for each in cursors:
                out.line(to_json(_fields(each, tail)))
            return
        rows = [
            (each.name, str(each.position), str(_lag(each, tail)), iso(each.updated))
            for each in cursors
        ]
        table(out, ("CURSOR", "POSITION", "LAG", "COMMITTED"), rows)


def _lag(cursor: CursorState, tail: int) -> int:
    return max(0, tail - cursor.position)


def _fields(cursor: CursorState, tail: int) -> dict[str, object]:
    return {
        "name": cursor.name,
        "position": cursor.position,
        "lag": _lag(cursor, tail),
        "created": iso(cursor.created),
        "updated": iso(cursor.updated),
    }


@cursor.command(
    "set",
    cls=SignedCommand,
    examples="""
    zlog cursor set orders billing earliest
    zlog cursor set orders billing 1000
    zlog cursor set orders billing @2h      # read the last two hours again
    """,
)
@log_argument
@click.argument("name", metavar="NAME", type=CURSOR_NAME)
@click.argument("position", metavar="POSITION", type=ranges.position_spec)
@pass_session
def set_(session: Session, log: str, name: str, position: PositionSpec) -> None:
    """Set a cursor to a position, or create it.

    POSITION may be negative (counts back from the tail, to 0 at most), earliest, latest, or a time
    as for `zlog read`. Stop the cursor's reader first: where its next commit would move the cursor
    back, it fails.
    """
    with session.open_log(log) as opened:
        begin = ranges.beginning(opened, position)
        made = opened.cursor(name, create=begin)
        made.reset(begin)
        note(f"cursor {name!r} is at {made.position}")


@cursor.command(
    examples="""
    zlog cursor rm orders billing
    """,
)
@log_argument
@click.argument("names", metavar="NAME...", nargs=-1, type=CURSOR_NAME, required=True)
@pass_session
def rm(session: Session, log: str, names: tuple[str, ...]) -> None:
    """Remove cursors, so that they no longer hold back a trim."""
    with session.open_log(log) as opened:
        for name in names:
            opened.cursor(name).remove()
            note(f"removed cursor {name!r}")
