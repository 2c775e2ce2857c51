"""Verbs that settle positions for ever: fill and trim."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from zlog import StoreUnavailable
from zlog.cli.output import note
from zlog.cli.parameters import POSITION, log_argument
from zlog.cli.session import Session, pass_session
from zlog.cli.verb import Verb


@click.command(
    cls=Verb,
    examples="""
    zlog fill orders 17
    """,
)
@log_argument
@click.argument("positions", metavar="POSITION...", nargs=-1, type=POSITION, required=True)
@pass_session
def fill(session: Session, log: str, positions: tuple[int, ...]) -> None:
    """Fill positions that nobody wrote.

    Readers can then pass them; they do this by themselves after a while. A position that holds an
    entry is left alone, and is an error; one that was filled or trimmed before is not.
    """
    with session.open_log(log) as opened:
        for position in positions:
            opened.fill(position)
            note(f"filled position {position}")


@contextmanager
def _full_store() -> Iterator[None]:
    """Give those who trim since the store is full another hint than to trim.

    What was trimmed has to be noted, which takes some space; removing a log gives more back.
    """
    try:
        yield
    except StoreUnavailable as error:
        if "store is full" in str(error):
            error.hint = "Remove a log that nobody needs (`zlog rm LOG`), or add space."
        raise


@click.command(
    cls=Verb,
    examples="""
    zlog trim orders 17 18
    zlog trim orders --to 1000           # positions 0 to 999
    """,
)
@log_argument
@click.argument("positions", metavar="[POSITION]...", nargs=-1, type=POSITION)
@click.option("--to", "end", type=POSITION, metavar="P", help="Trim every position below P.")
@pass_session
def trim(session: Session, log: str, positions: tuple[int, ...], end: int | None) -> None:
    """Give the space of positions back.

    They hold no entry from then on, for good.
    """
    if (end is None) == (not positions):
        raise click.UsageError("name either positions, or --to P for all positions below P")
    with session.open_log(log) as opened, _full_store():
        if end is not None:
            opened.trim_to(end)
            note(f"trimmed every position below {end}")
        for position in positions:
            opened.trim(position)
            note(f"trimmed position {position}")
