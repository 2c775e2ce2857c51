"""The command rm: removes logs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

import zlog
from zlog.cli.command import Command
from zlog.cli.names import LOG_NAME
from zlog.cli.output import note
from zlog.cli.session import Session, pass_session
from zlog.cli.several import for_each, selection_options


@click.command(
    cls=Command,
    examples="""
    zlog rm orders
    zlog rm --yes orders invoices
    zlog rm --match 'test-*'
    """,
)
@click.argument("logs", metavar="LOG...", nargs=-1, type=LOG_NAME)
@selection_options
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@pass_session
def rm(
    session: Session, logs: tuple[str, ...], match: tuple[str, ...], dry_run: bool, yes: bool
) -> int:
    """Remove logs with all their entries, permanently."""
    if not (yes or dry_run) and not (sys.stdin and sys.stdin.isatty()):
        raise click.UsageError("stdin is not a terminal, so rm cannot ask and needs --yes")

    def remove(log: str) -> None:
        with session.connect() as store:
            zlog.Log.remove(store, log, timeout=session.timeout)
        note(f"removed log {log!r}")

    confirm = None if yes else _confirm
    return for_each(session, logs, match, remove, dry_run=dry_run, confirm=confirm)


def _confirm(store: zlog.Store, names: Sequence[str]) -> bool:
    what = f"log {names[0]!r}" if len(names) == 1 else f"{len(names):,} logs"
    question = f"Remove {what} of {store.url} with all entries?"
    if len(names) > 1:
        question = f"{', '.join(names)}\n{question}"
    return click.confirm(question, err=True)
