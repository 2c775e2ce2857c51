"""The command trim: frees the space of positions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from zlog import StoreUnavailable
from zlog.cli import ranges
from zlog.cli.command import SignedCommand
from zlog.cli.names import LOG_NAME, LOG_NAME_UNCHECKED
from zlog.cli.output import note
from zlog.cli.parameters import POSITION
from zlog.cli.ranges import PositionSpec
from zlog.cli.session import Session, pass_session
from zlog.cli.several import for_each, selection_options


@contextmanager
def _full_store() -> Iterator[None]:
    """If a trim in the ``with`` block fails because the store is full, suggest how to get space.

    A trim writes a record, which may not fit into a full store.
    """
    try:
        yield
    except StoreUnavailable as error:
        if "store is full" in str(error):
            error.hint = "Remove a log that is not needed (`zlog rm`), or add space."
        raise


@click.command(
    cls=SignedCommand,
    examples="""
    zlog trim orders 17 18
    zlog trim orders --to 1000           # positions 0 to 999
    zlog trim orders --to @7d            # entries older than seven days
    zlog trim --match 'web-*' --to @7d
    """,
)
@click.argument("words", metavar="LOG... [POSITION]...", nargs=-1, type=LOG_NAME_UNCHECKED)
@selection_options
@click.option(
    "--to",
    "end",
    type=ranges.position_spec,
    metavar="P",
    help="Trim every position below P. P is a position, a negative position (counts back from the"
    " tail), latest, @7d or @TIME.",
)
@click.option(
    "--past-cursors",
    is_flag=True,
    help="Trim even entries that readers with a cursor have not read.",
)
@pass_session
def trim(
    session: Session,
    words: tuple[str, ...],
    match: tuple[str, ...],
    dry_run: bool,
    end: PositionSpec | None,
    past_cursors: bool,
) -> int:
    """Remove entries permanently, and free their space.

    With --to, all arguments are names of logs. Otherwise only the first one is. The command fails
    if the trim would pass a cursor, unless you give --past-cursors. Times have the same form as for
    `zlog read`.
    """
    ctx = click.get_current_context()
    # A number after the first argument is a position, although it could be the name of a log.
    single = end is None or any(word.isdecimal() for word in words[1:])
    logs, rest = (words[:1], words[1:]) if single else (words, ())
    logs = tuple(LOG_NAME.convert(name, None, ctx) for name in logs)
    positions = [POSITION(word, None, ctx) for word in rest]
    if (end is None) == (not positions) or (positions and match):
        raise click.UsageError("give either positions, or --to P for all positions below P")
    if past_cursors and end is None:
        raise click.UsageError(
            "--past-cursors is only for --to: cursors do not protect single positions"
        )

    def trim_one(log: str) -> None:
        with session.open_log(log) as opened, _full_store():
            if end is not None:
                below = ranges.resolve(opened, end, opened.tail())
                opened.trim_to(below, past_cursors=past_cursors)
                note(f"trimmed every position below {below}")
            for position in positions:
                opened.trim(position)
                note(f"trimmed position {position}")

    return for_each(session, logs, match, trim_one, dry_run=dry_run)
