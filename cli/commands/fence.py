"""The command fence: taking a log from its exclusive writer."""

from __future__ import annotations

import click

from zlog.cli.appenders import who_appends
from zlog.cli.command import Command
from zlog.cli.names import log_argument
from zlog.cli.output import note
from zlog.cli.session import Session, pass_session


@click.command(
    cls=Command,
    examples="""
    zlog fence orders
    """,
)
@log_argument
@pass_session
def fence(session: Session, log: str) -> None:
    """Take a log from its exclusive writer.

    Any client may append again. The writer confirms nothing more, whether it runs or not. What it
    has confirmed is in the log, and of what it had under way a part, from the front on, may be. A
    log that is not exclusive stays as it is.
    """
    with session.open_log(log) as opened:
        before = opened.view
        opened.fence()
        if before.writer is None:
            note(f"log {log!r} has no exclusive writer")
        else:
            note(f"log {log!r} is not {who_appends(before)}'s any more: any client may append")
