"""The command tail: prints the last entries of a log, and new ones."""

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
from zlog.cli.group_tail import tail_group
from zlog.cli.groups import GROUP_NAME
from zlog.cli.merge import read_many, tail_many
from zlog.cli.names import CURSOR_NAME
from zlog.cli.output import Output, say
from zlog.cli.parameters import hole_timeout_option
from zlog.cli.ranges import PositionSpec
from zlog.cli.render import Style, style_options
from zlog.cli.session import Session, pass_session
from zlog.cli.several import is_selection, selection_argument
from zlog.cli.tags import Selected, selected, selecting_options

_LAST_DEFAULT = 10


@click.command(
    cls=Command,
    examples=r"""
    zlog tail orders                      # the last ten entries
    zlog tail orders -n 100 --json
    zlog tail orders --follow             # and new entries
    zlog tail orders --since-start -f --format '%p %s\n'
    zlog tail orders --from @5m -f        # the last five minutes, and new entries
    zlog tail orders --tag eu -f          # the last ten with this tag, and new ones
    zlog tail orders --cursor billing -f  # continue where the last call stopped
    zlog tail orders -n 0 -f --count 1    # wait for the next entry
    zlog tail orders --cursor worker -e   # from the cursor to the tail
    zlog tail orders --group audit -f     # share the entries with other members of a group
    zlog tail 'web-*' -f                  # several logs
    """,
)
@selection_argument
@click.option(
    "-n",
    "last",
    type=click.IntRange(min=0),
    metavar="N",
    help=(
        "Start N positions before the tail or, with --tag, N matching entries before it."
        f"  [default: {_LAST_DEFAULT}]"
    ),
)
@click.option(
    "-f",
    "-F",
    "--follow",
    "on",
    is_flag=True,
    help="Wait for new entries and print them, until stopped.",
)
@click.option(
    "-c", "--count", type=click.IntRange(min=1), metavar="N", help="Stop after N entries."
)
@click.option(
    "-e",
    "--exit-at-tail",
    is_flag=True,
    help="Stop at the tail. Entries appended while the command runs are printed too.",
)
@click.option("--since-start", is_flag=True, help="Start with the oldest entry.")
@ranges.from_option()
@click.option(
    "--cursor",
    "name",
    type=CURSOR_NAME,
    metavar="NAME",
    help="Start at this cursor, and advance it past the printed entries. A new cursor starts at"
    " --from or, without it, at the oldest entry.",
)
@click.option(
    "--group",
    type=GROUP_NAME,
    metavar="NAME",
    help="Print the entries that this member of a group gets, and acknowledge them. A new group is"
    " a queue that starts at --from or, without it, at the oldest entry.",
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
    group: str | None,
    tags: tuple[str, ...],
    match: Match | None,
    style: Style,
    hole_timeout: zlog.Timeout,
) -> int:
    """Print the last entries, and new ones.

    Each entry is followed by a newline. The command reports positions without an entry on stderr
    or, with --json, as {"gap": ...}. It waits at an unwritten position until the position is
    written or filled. With --tag, it prints only entries with the tag, and gaps that may hide such
    an entry.

    If LOG is several names with commas or a pattern such as 'web-*', each line begins with the name
    of its log. With --follow, entries are printed as they arrive, and new logs that match the
    pattern are included; otherwise they are sorted by time.

    With --cursor, the command starts at the cursor. It advances the cursor every second, and when
    Ctrl-C, SIGTERM or SIGHUP ends it, after flushing the output. If the command is killed, the next
    one repeats some entries, so each entry is printed at least once.

    With --group, the command is one more member of a group (`zlog group`), which shares the entries
    with the others. It acknowledges entries after flushing the output, and gives back the others if
    it is stopped or the reader of a pipe ends. Without --follow, it stops if there are no entries.
    """
    if group is not None and (
        is_selection(log) or since_start or tags or match or (last, name) != (None, None)
    ):
        raise click.UsageError(
            "--group needs a single log, and cannot be combined with -n, --since-start, --cursor or"
            " --tag"
        )
    if sum((since_start, last is not None, begin is not None)) > 1:
        raise click.UsageError("-n, --since-start and --from cannot be combined")
    if is_selection(log) and (name is not None or exit_at_tail or (last and tags)):
        raise click.UsageError("--cursor, --exit-at-tail, and -n with --tag need a single log")
    if name is not None and last is not None:
        raise click.UsageError("--cursor and -n cannot be combined")
    if group is not None:
        with Output() as out, session.open_log(log, hole_timeout=hole_timeout) as opened_log:
            intact = tail_group(
                opened_log,
                group,
                begin,
                count,
                style.renderer(out),
                out,
                on=on and not exit_at_tail,
            )
        return exit_code_of_reading(log, intact=intact)
    if since_start:
        begin = "earliest"
    select = selected(tags, match)
    if last is None:
        last = min(_LAST_DEFAULT, count or _LAST_DEFAULT)
    if is_selection(log):
        start = begin if begin is not None else -last or "latest"
        if on:
            return tail_many(session, log, start, select, count, style, hole_timeout)

        def items_of(each: zlog.Log) -> Iterator[Entry | Gap]:
            tail = each.tail()
            first = ranges.resolve(each, start, tail)
            if first > tail:
                say(f"--from is beyond the tail, which is {tail}")
            return each.read_range(first, **select)

        return read_many(session, log, items_of, style, hole_timeout, count=count)
    how: dict[str, Any] = {
        "timeout": session.timeout,
        "hole_timeout": hole_timeout,
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
            start = _nth_last(opened, last, end, select)
        if on and not exit_at_tail:

            async def run() -> bool:
                if beyond:  # printed here, where an interrupt is handled
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
    """Return the start of the last ``count`` positions or matching entries before ``end``."""
    if not select["tags"] or not count:
        return max(0, end - count)
    found = log.read_range(end=end, reverse=True, **select)
    positions = (item.position for item in found if isinstance(item, Entry))
    return min(islice(positions, count), default=end)


def _items(
    log: zlog.Log, start: int, end: int, select: Selected, out: Output, *, to_tail: bool
) -> Iterator[Entry | Gap]:
    """Iterate over a range and, if ``to_tail``, on to the tail at that time."""
    while start < end:
        yield from flushing(log.read_range(start, end, **select), out)
        start, end = end, log.tail() if to_tail else end


def _first(items: Iterator[Entry | Gap], count: int | None) -> Iterator[Entry | Gap]:
    """Iterate up to the entry with the number ``count``, or over all items for None."""
    entries = 0
    for item in items:
        yield item
        entries += isinstance(item, Entry)
        if entries == count:
            return
