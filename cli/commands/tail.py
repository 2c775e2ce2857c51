"""The command tail: the end of a log, and what comes after it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import Any

import click

import zlog
from zlog import Entry, Gap, Match, aio
from zlog.cli import ranges
from zlog.cli.command import Command
from zlog.cli.cursor_commit import flushing, open_cursor, print_items
from zlog.cli.exit_codes import exit_code_of_reading
from zlog.cli.follow import follow
from zlog.cli.names import CURSOR_NAME, log_argument
from zlog.cli.output import Output, say
from zlog.cli.parameters import hole_timeout_option, or_none
from zlog.cli.ranges import PositionSpec
from zlog.cli.render import Style, style_options
from zlog.cli.session import Session, pass_session
from zlog.cli.tags import Selected, selected, selecting_options

_LAST_DEFAULT = 10


@click.command(
    cls=Command,
    examples=r"""
    zlog tail orders                      # the last ten
    zlog tail orders -n 100 --json
    zlog tail orders --follow             # and what is appended from now on
    zlog tail orders --since-start -f --format '%p %s\n'
    zlog tail orders --from @5m -f        # the last five minutes, and on
    zlog tail orders --tag eu -f          # the last ten with this tag, and new ones
    zlog tail orders --cursor billing -f  # go on where it stopped the last time
    zlog tail orders -n 0 -f --count 1    # wait for the next entry
    zlog tail orders --cursor worker -e   # what is there, also what comes meanwhile
    """,
)
@log_argument
@click.option(
    "-n",
    "last",
    type=click.IntRange(min=0),
    metavar="N",
    help=(
        "Start N positions before the tail, or where the last N entries with --tag begin."
        f"  [default: {_LAST_DEFAULT}]"
    ),
)
@click.option(
    "-f", "-F", "--follow", "on", is_flag=True, help="Wait for new entries, until stopped."
)
@click.option(
    "-c", "--count", type=click.IntRange(min=1), metavar="N", help="Stop after N entries."
)
@click.option(
    "-e",
    "--exit-at-tail",
    is_flag=True,
    help="Stop at the tail, behind entries that were appended meanwhile too.",
)
@click.option("--since-start", is_flag=True, help="Start with the oldest entry.")
@click.option(
    "--from",
    "begin",
    type=ranges.position_spec,
    metavar="POSITION",
    help="Start at a position, earliest, latest, or a time such as @5m, as for `zlog read`.",
)
@click.option(
    "--cursor",
    "name",
    type=CURSOR_NAME,
    metavar="NAME",
    help="Start at this cursor, and advance it past what was printed. A new one starts at --from,"
    " else at the oldest entry.",
)
@selecting_options
@style_options
@hole_timeout_option
@pass_session
def tail(
    session: Session,
    log: str,
    last: int | None,
    on: bool,
    count: int | None,
    exit_at_tail: bool,
    since_start: bool,
    begin: PositionSpec | None,
    name: str | None,
    tags: tuple[str, ...],
    match: Match | None,
    style: Style,
    hole_timeout: float,
) -> int:
    """Print the last entries, and new ones.

    Each is followed by a newline. Positions without an entry are reported on stderr, or as {"gap":
    ...} with --json. A follower waits at an unwritten position until it is written or filled. With
    --tag, only entries with the tag count, and gaps that may hide one.

    With --cursor, the command resumes where the last one with this cursor stopped. It advances the
    cursor after the output is flushed, every second and at the end, also on Ctrl-C, SIGTERM and
    SIGHUP. If it is killed in between, the next one prints some entries again: each is printed at
    least once.
    """
    hole_seconds = or_none(hole_timeout)
    if sum((since_start, last is not None, begin is not None)) > 1:
        raise click.UsageError("-n, --since-start and --from exclude each other")
    if name is not None and last is not None:
        raise click.UsageError("--cursor and -n exclude each other")
    if since_start:
        begin = "earliest"
    select = selected(tags, match)
    how: dict[str, Any] = {
        "timeout": session.timeout,
        "hole_timeout": hole_seconds,
        "mac_key": session.mac_key,
    }
    with Output() as out, session.connect() as store:
        opened = zlog.Log.open(store, log, **how)
        renderer = style.renderer(out)
        cursor = None if name is None else open_cursor(opened, name, begin)
        end = opened.tail()
        beyond = ""
        if cursor is not None:
            start = cursor.position
        elif begin is not None:
            start = ranges.resolve(opened, begin, end)
            if start > end:
                beyond = f"--from is beyond the tail of log {log!r}, which is {end}"
        else:
            wanted = min(_LAST_DEFAULT, count or end) if last is None else last
            start = _nth_last(opened, wanted, end, select)
        if on and not exit_at_tail:

            async def run() -> bool:
                if beyond:  # said here, where an interrupt ends it as it should
                    say(f"{beyond}: waiting for position {start}")
                opening = aio.Log.open(store, log, **how)
                return await follow(opening, start, select, count, name, renderer, out)

            intact = asyncio.run(run())
        else:
            if beyond:
                say(beyond)
            found = _items(opened, start, end, select, out, to_tail=exit_at_tail)
            items = _first(found, count)
            intact = print_items(items, renderer, out, cursor, 0 if count else end)
    return exit_code_of_reading(log, intact=intact)


def _nth_last(log: zlog.Log, count: int, end: int, select: Selected) -> int:
    """Return where the last ``count`` before ``end`` begin: positions, or entries with the tags."""
    if not select["tags"] or not count:
        return max(0, end - count)
    found = log.read_range(end=end, reverse=True, **select)
    positions = (item.position for item in found if isinstance(item, Entry))
    return min(islice(positions, count), default=end)


def _items(
    log: zlog.Log, start: int, end: int, select: Selected, out: Output, *, to_tail: bool
) -> Iterator[Entry | Gap]:
    """Go through a range, and on to the tail as it is then."""
    while start < end:
        yield from flushing(log.read_range(start, end, **select), out)
        start, end = end, log.tail() if to_tail else end


def _first(items: Iterator[Entry | Gap], count: int | None) -> Iterator[Entry | Gap]:
    """Go as far as the entry with this number; None: through all."""
    entries = 0
    for item in items:
        yield item
        entries += isinstance(item, Entry)
        if entries == count:
            return
