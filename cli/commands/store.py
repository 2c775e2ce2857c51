"""The command store: compacts and restores the file of an embedded store."""

from __future__ import annotations

from pathlib import Path

import click

from zlog.cli.command import CommandGroup
from zlog.cli.output import note
from zlog.cli.session import Session, pass_session, usage_errors
from zlog.cli.units import human_bytes
from zlog.store import restore as restore_store


@click.group(
    cls=CommandGroup,
    examples="""
    zlog store compact
    zlog store restore /backup/zlog
    """,
)
def store() -> None:
    """Compact an embedded store's file, or restore it from a backup."""


@store.command(
    examples="""
    zlog store compact
    zlog --store file:///var/lib/app/log store compact
    """,
)
@pass_session
def compact(session: Session) -> None:
    """Shrink an embedded store's file, and free disk space.

    The file never shrinks by itself: appends reuse the space of trimmed entries. This command
    replaces the file by a copy without free space, so the disk must have space for the copy. No
    other process may have the store open. Killing the command does no harm.

    To keep only the newest entry of each tag, see `zlog retention --compact-after`.
    """
    with session.connect() as opened:
        freed = opened.compact()
        note(f"compacted {opened.url}: freed {human_bytes(max(freed, 0))} of the disk")


@store.command(
    examples="""
    zlog store restore /backup/zlog
    zlog --store file:///var/lib/app/log store restore /backup/data.mdb
    """,
)
@click.argument("backup", type=click.Path(exists=True, path_type=Path), required=False)
@pass_session
def restore(session: Session, backup: Path | None) -> None:
    """Restore an embedded store from a backup.

    BACKUP is a copy of a store's directory or of its data.mdb, which the command does not change.
    If you have already copied a data.mdb into the store's directory, omit BACKUP. Entries appended
    after the backup are lost, and their positions will be granted again. No other process may have
    the store open.
    """
    with usage_errors():
        restore_store(session.url, backup)
    note(f"restored {session.url}")
