"""The command read-only: closing a log to appends."""

from __future__ import annotations

import click

from zlog.cli.command import Command
from zlog.cli.names import log_argument
from zlog.cli.output import note
from zlog.cli.session import Session, pass_session


@click.command(
    name="read-only",
    cls=Command,
    examples="""
    zlog read-only orders
    zlog read-only orders --off          # it takes appends again
    """,
)
@log_argument
@click.option("--off", is_flag=True, help="Have the log take appends again, of any client.")
@pass_session
def read_only(session: Session, log: str, off: bool) -> None:
    """Have a log take no appends, of any client.

    All else goes on: reading, trimming, removing. An exclusive writer is fenced. The command may be
    repeated.
    """
    with session.open_log(log) as opened:
        if off:
            opened.writable()
            note(f"log {log!r} is open to all clients")
        else:
            opened.read_only()
            note(f"log {log!r} is read-only from position {opened.tail():,} on")
