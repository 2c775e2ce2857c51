"""The command read: prints positions and ranges of a log."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import click

from zlog import Entry, Gap, Log, Match, NotWritten, Timeout, ZlogError
from zlog.cli import ranges
from zlog.cli.command import SignedCommand
from zlog.cli.cursor_commit import flushing, open_cursor, print_items
from zlog.cli.exit_codes import exit_code_of_reading
from zlog.cli.merge import read_many
from zlog.cli.names import CURSOR_NAME
from zlog.cli.output import Output
from zlog.cli.parameters import hole_timeout_option
from zlog.cli.progress import Progress
from zlog.cli.render import Style, style_options
from zlog.cli.session import Session, pass_session
from zlog.cli.several import is_selection, selection_argument
from zlog.cli.tags import Selected, selected, selecting_options


@click.command(
    cls=SignedCommand,
    examples=r"""
    zlog read orders                     # everything
    zlog read orders 5                   # one entry; exit code 4 if there is none
    zlog read orders 5:10 -10:           # positions 5 to 9, and the last ten
    zlog read orders @10m:@5m            # entries from ten to five minutes ago
    zlog read orders @yesterday:@today   # yesterday's entries
    zlog read orders --cursor nightly --commit   # entries since the last call
    zlog read orders --tag eu --tag paid --match all
    zlog read orders --tag eu --reverse | head -1   # the newest entry
    zlog read orders --json | jq -r .data
    zlog read orders --format '%p\t%t\t%s\n'
    zlog read 'web-*' @10m:              # several logs, sorted by time
    """,
)
@selection_argument
@click.argument("wanted", metavar="[RANGE]...", nargs=-1, type=ranges.parse)
@selecting_options
@click.option("--reverse", is_flag=True, help="Print each range from its end to its start.")
@style_options
@click.option("--cursor", "name", type=CURSOR_NAME, metavar="NAME", help="Start at this cursor.")
@click.option(
    "--commit",
    is_flag=True,
    help="Advance the cursor past the printed entries, and create it if it does not exist.",
)
@hole_timeout_option
@pass_session
def read(
    session: Session,
    log: str,
    wanted: tuple[ranges.Range, ...],
    tags: tuple[str, ...],
    match: Match | None,
    reverse: bool,
    style: Style,
    name: str | None,
    commit: bool,
    hole_timeout: Timeout,
) -> int:
    r"""Print entries, each followed by a newline.

    RANGE is a position (5) or a slice (5:10, 5:, :10). Negative numbers count back from the tail,
    so -10: means the last ten positions. A bound can also be earliest (the first position that is
    not trimmed), latest (the tail), or a time, such as @5m (five minutes ago; s, m, h, d, w),
    @10:00, @today, @yesterday or '@2026-11-20 10:00'. Times are in UTC unless you give an offset
    (+01:00), and are compared with the writers' clocks. A single time means all entries from then
    on. Without RANGE, the command prints the whole log.

    With --cursor, the command prints the entries from the cursor to the tail. With --commit, it
    also advances the cursor every second and at the end, after flushing the output. If the command
    dies, the next one repeats some entries, so each entry is printed at least once.

    If LOG is several names with commas or a pattern such as 'web-*', the entries are sorted by
    time, and each line begins with the name of its log.

    The command reports positions without an entry on stderr or, with --json, as {"gap": ...}. With
    --tag, it reports only gaps that may hide an entry with the tag.

    `read` prints the lines that `append` was given, and `read --raw` prints the bytes that `append
    --keep-newline` was given.
    """
    if name is not None and wanted:
        raise click.UsageError("--cursor and RANGE cannot be combined")
    if commit and name is None:
        raise click.UsageError("--commit needs --cursor")
    if name is not None and reverse:
        raise click.UsageError("--cursor and --reverse cannot be combined")
    select = selected(tags, match)
    if is_selection(log):
        if name is not None or any(each.single for each in wanted):
            raise click.UsageError("single positions and --cursor need a single log")

        def items_of(opened: Log) -> Iterator[Entry | Gap]:
            tail = opened.tail()
            parts = [each.resolve(opened, tail) for each in wanted or (ranges.EVERYTHING,)]
            return chain.from_iterable(
                opened.read_range(start, end, reverse=reverse, **select) for start, end in parts
            )

        return read_many(session, log, items_of, style, hole_timeout, reverse=reverse)
    if tags and any(each.single for each in wanted):
        raise click.UsageError("--tag selects entries of a range: it excludes single positions")
    with (
        Output() as out,
        session.open_log(log, hole_timeout=hole_timeout) as opened,
    ):
        renderer = style.renderer(out)
        cursor, end = None, 0
        if name is not None:
            cursor = open_cursor(opened, name, None) if commit else opened.cursor(name)
            end = opened.tail()
            wanted = (ranges.Range(cursor.position, end),)
        items = (
            item
            for each in wanted or (ranges.EVERYTHING,)
            for item in _items(opened, each, select, reverse, out, as_json=style.as_json)
        )
        intact = print_items(items, renderer, out, cursor if commit else None, end)
    return exit_code_of_reading(log, intact=intact)


def _items(
    log: Log, wanted: ranges.Range, select: Selected, reverse: bool, out: Output, *, as_json: bool
) -> Iterator[Entry | Gap]:
    """Iterate over a range, and show the progress."""
    tail = log.tail()
    if wanted.single and isinstance(wanted.start, int):
        try:
            yield _one(log, wanted.start, tail)
        except ZlogError as error:
            if as_json and (gap := getattr(error, "gap", None)):
                yield gap
            raise
        return
    start, end = wanted.resolve(log, tail)
    with Progress(end - start, "reading", hidden=out.is_terminal) as progress:
        for item in flushing(log.read_range(start, end, reverse=reverse, **select), out):
            yield item
            progress.reach(end - item.position if reverse else item.end - start, end - start)


def _one(log: Log, position: int, tail: int) -> Entry:
    """Return the entry at a position. A negative position counts back from the tail.

    Raises NotWritten if the position is unwritten, or outside the log.
    """
    where = f"log {log.name!r}"
    start = position + tail if position < 0 else position
    if start < 0:
        why = f"position {position} is before the start of {where}, whose tail is {tail}"
        raise NotWritten(
            why if tail else f"{where} is empty: it has no position {position}",
            hint=f"`zlog info {log.name}` shows its tail.",
        )
    try:
        return log.read(start)
    except NotWritten as error:
        if start < tail:
            raise
        why = f"position {start} of {where} is beyond the tail ({tail})"
        raise NotWritten(
            why if tail else f"{where} is empty: position {start} holds nothing yet",
            hint=f"`zlog tail {log.name} --follow` waits for new entries.",
        ) from error
