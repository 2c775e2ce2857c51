"""The command rm: removes logs."""

from __future__ import annotations

import sys

import click

import zlog
from zlog.cli.command import Command
from zlog.cli.names import LOG_NAME
from zlog.cli.output import note
from zlog.cli.session import Session, pass_session


@click.command(
    cls=Command,
    examples="""
    zlog rm orders
    zlog rm --yes orders invoices
    """,
)
@click.argument(
    "log_names",
    metavar="LOG...",
    nargs=-1,
    required=True,
    type=LOG_NAME,
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@pass_session
def rm(session: Session, log_names: tuple[str, ...], yes: bool) -> int:
    """Remove logs with all their entries, permanently."""
    if not yes and not (sys.stdin and sys.stdin.isatty()):
        raise click.UsageError("stdin is not a terminal, so rm cannot ask and needs --yes")
    with session.connect() as store:
        for name in log_names:
            question = f"Remove log {name!r} of {store.url} with all its entries?"
            if not yes and not click.confirm(question, err=True):
                return 1
            zlog.Log.remove(store, name, timeout=session.timeout)
            note(f"removed log {name!r}")
    return 0
