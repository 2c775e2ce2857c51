"""The command trim: frees the space of positions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from zlog import StoreUnavailable
from zlog.cli import ranges
from zlog.cli.command import SignedCommand
from zlog.cli.names import log_argument
from zlog.cli.output import note
from zlog.cli.parameters import POSITION
from zlog.cli.ranges import PositionSpec
from zlog.cli.session import Session, pass_session


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
    """,
)
@log_argument
@click.argument("positions", metavar="[POSITION]...", nargs=-1, type=POSITION)
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
    log: str,
    positions: tuple[int, ...],
    end: PositionSpec | None,
    past_cursors: bool,
) -> None:
    """Remove entries permanently, and free their space.

    The command fails if the trim would pass a cursor, unless you give --past-cursors. Times have
    the same form as for `zlog read`.
    """
    if (end is None) == (not positions):
        raise click.UsageError("give either positions, or --to P for all positions below P")
    if past_cursors and end is None:
        raise click.UsageError(
            "--past-cursors is only for --to: cursors do not protect single positions"
        )
    with session.open_log(log) as opened, _full_store():
        if end is not None:
            below = ranges.resolve(opened, end, opened.tail())
            opened.trim_to(below, past_cursors=past_cursors)
            note(f"trimmed every position below {below}")
        for position in positions:
            opened.trim(position)
            note(f"trimmed position {position}")
