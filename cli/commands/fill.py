"""The command fill: settles unwritten positions."""

from __future__ import annotations

import click

from zlog.cli.command import SignedCommand
from zlog.cli.names import log_argument
from zlog.cli.output import note
from zlog.cli.parameters import POSITION
from zlog.cli.session import Session, pass_session


@click.command(
    cls=SignedCommand,
    examples="""
    zlog fill orders 17
    """,
)
@log_argument
@click.argument("positions", metavar="POSITION...", nargs=-1, type=POSITION, required=True)
@pass_session
def fill(session: Session, log: str, positions: tuple[int, ...]) -> None:
    """Fill unwritten positions, so that readers can pass them.

    Readers do this by themselves after a while. A position that holds an entry, or has lost what
    was stored there, stays as it is, and is an error; one that is filled or trimmed already is not.
    """
    with session.open_log(log) as opened:
        for position in positions:
            opened.fill(position)
            note(f"filled position {position}")
