"""The command promote: making a mirror a log of its own."""

from __future__ import annotations

import click

from zlog.cli.command import Command
from zlog.cli.names import log_argument
from zlog.cli.output import note
from zlog.cli.session import Session, pass_session


@click.command(
    cls=Command,
    examples="""
    zlog promote orders
    zlog --store file:///backup/store promote orders
    """,
)
@log_argument
@pass_session
def promote(session: Session, log: str) -> None:
    """Make a mirror a log of its own, which takes appends.

    Copying to it ends, and can't go on. Positions that were being copied are trimmed, so that no
    entry follows one that is missing.
    """
    with session.open_log(log) as opened:
        opened.promote()
        note(f"log {log!r} takes appends now, from position {opened.tail()} on")
