"""The verb tail: the end of a log, and what comes after it."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import click

import zlog
from zlog import aio
from zlog.cli import ranges
from zlog.cli.cursor_commit import CursorCommit, open_cursor
from zlog.cli.exit_codes import ExitCode
from zlog.cli.follow import follow
from zlog.cli.output import Output, say
from zlog.cli.parameters import cursor_name, hole_timeout_option, log_argument, or_none
from zlog.cli.ranges import Place
from zlog.cli.render import Renderer, Style, show, style_options
from zlog.cli.session import Session, pass_session
from zlog.cli.verb import Verb

_COUNT_DEFAULT = 10


@click.command(
    cls=Verb,
    examples=r"""
    zlog tail orders                      # the last ten
    zlog tail orders -n 100 --json
    zlog tail orders --follow             # and what is appended from now on
    zlog tail orders --since-start -f --format '%p %s\n'
    zlog tail orders --from @5m -f        # the last five minutes, and on
    zlog tail orders --cursor billing -f  # go on where it stopped the last time
    """,
)
@log_argument
@click.option(
    "-n",
    "count",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"How many positions before the tail to print.  [default: {_COUNT_DEFAULT}]",
)
@click.option(
    "-f", "-F", "--follow", "on", is_flag=True, help="Go on with new entries, until stopped."
)
@click.option("--since-start", is_flag=True, help="Begin with the oldest entry.")
@click.option(
    "--from",
    "begin",
    type=ranges.place,
    metavar="PLACE",
    help="Begin at a position, earliest, latest, @5m or @TIME, as for `zlog read`.",
)
@click.option(
    "--cursor",
    "name",
    type=cursor_name,
    metavar="NAME",
    help="Begin at this cursor, and move it along what was printed. A new one begins at --from,"
    " or at the oldest entry.",
)
@style_options(("--format",))
@hole_timeout_option
@pass_session
def tail(
    session: Session,
    log: str,
    count: int | None,
    on: bool,
    since_start: bool,
    begin: Place | None,
    name: str | None,
    style: Style,
    hole_timeout: float,
) -> int:
    """Print the last entries, and new ones.

    Each is followed by a newline. Positions that hold no entry are told on stderr, or as {"gap":
    ...} with --json. A reader that follows passes no position before it is known what becomes of
    it.

    With --cursor the command goes on where the last one with that cursor stopped. It moves the
    cursor after the output was flushed, every second and at its end, also by Ctrl-C or SIGTERM. If
    it is killed in between, the next one prints some entries again: each is printed at least once.
    """
    hole_seconds = or_none(hole_timeout)
    if sum((since_start, count is not None, begin is not None)) > 1:
        raise click.UsageError("-n, --since-start and --from exclude each other")
    if name is not None and count is not None:
        raise click.UsageError("a cursor says where to begin: -n does not go with it")
    if since_start:
        begin = ranges.End.EARLIEST
    with Output() as out, session.connect() as store:
        opened = zlog.Log.open(store, log, timeout=session.timeout, hole_timeout=hole_seconds)
        renderer = style.renderer(out)
        cursor = None if name is None else open_cursor(opened, name, begin)
        end = opened.tail()
        if cursor is not None:
            start = cursor.position
        elif begin is not None:
            start = ranges.resolve(opened, begin, end)
        else:
            start = max(0, end - (_COUNT_DEFAULT if count is None else count))
        if on:
            opening = aio.Log.open(store, log, timeout=session.timeout, hole_timeout=hole_seconds)
            asyncio.run(follow(opening, start, name, renderer, out))
        intact = _print_once(opened, start, end, cursor, renderer, out)
    if not intact:
        say(f"some entries are lost; `zlog check {log}` shows which")
    return ExitCode.OK if intact else ExitCode.FAILURE


def _print_once(
    log: zlog.Log,
    start: int,
    end: int,
    cursor: zlog.Cursor | None,
    renderer: Renderer,
    out: Output,
) -> bool:
    """Print what is there. Returns False when something of it is lost."""
    cursor_commit = None if cursor is None else CursorCommit(cursor, out)
    intact = True
    with cursor_commit.at_end() if cursor_commit else nullcontext():
        for item in log.read_range(start, end):
            intact = show(renderer, item) and intact
            if cursor_commit:
                cursor_commit.printed(item)
    return intact
