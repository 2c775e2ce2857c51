"""The command compact: giving space of an embedded store back to its disk."""

from __future__ import annotations

import click

from zlog.cli.command import Command
from zlog.cli.output import note
from zlog.cli.session import Session, pass_session
from zlog.cli.units import human_bytes


@click.command(
    cls=Command,
    examples="""
    zlog compact
    zlog --store file:///var/lib/app/log compact
    """,
)
@pass_session
def compact(session: Session) -> None:
    """Give an embedded store's free space back to its disk.

    What is trimmed makes room for what is appended later, and the file keeps its size. This puts a
    copy without that room in its place, for which the disk must have space. No other process may
    have the store open meanwhile. It may be killed at any moment.

    To keep only the newest entry of each tag, see `zlog retention --compact-after`.
    """
    with session.connect() as store:
        freed = store.compact()
        note(f"compacted {store.url}: {human_bytes(max(freed, 0))} are free for others")
