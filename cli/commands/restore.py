"""The command restore: putting an embedded store back to a backup."""

from __future__ import annotations

from pathlib import Path

import click

from zlog.cli.command import Command
from zlog.cli.output import note
from zlog.cli.session import Session, pass_session, usage_errors
from zlog.store import restore as restore_store


@click.command(
    cls=Command,
    examples="""
    zlog restore /backup/zlog
    zlog --store file:///var/lib/app/log restore /backup/data.mdb
    """,
)
@click.argument("backup", type=click.Path(exists=True, path_type=Path), required=False)
@pass_session
def restore(session: Session, backup: Path | None) -> None:
    """Put an embedded store back to a backup.

    BACKUP is a store's directory, or a copy of its data.mdb; it stays as it is. What was written
    since then is lost, and the positions behind its tail are granted once more. Without BACKUP the
    store goes on with the data.mdb that is in its directory, having been put there by hand. No
    other process may have the store open.
    """
    with usage_errors():
        restore_store(session.url, backup)
    note(f"restored {session.url}")
