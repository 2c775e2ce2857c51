"""The command import: a log from a file that export wrote."""

from __future__ import annotations

import errno
import sys

import click

import zlog
from zlog.cli.command import Command
from zlog.cli.names import log_argument
from zlog.cli.output import note
from zlog.cli.parameters import width_option
from zlog.cli.render import entries_of
from zlog.cli.session import Session, pass_session


@click.command(
    "import",
    cls=Command,
    examples="""
    zlog import orders < orders.zlog
    zlog import orders --no-promote < orders.zlog     # and then, with what came since:
    zlog import orders < more.zlog
    """,
)
@log_argument
@width_option("As for `zlog create`.  [default: as the exported log's]")
@click.option(
    "--no-promote", is_flag=True, help="Leave it a mirror, since more is to be imported later."
)
@pass_session
def import_(session: Session, log: str, width: int | None, no_promote: bool) -> None:
    """Make a log from an export on stdin.

    Each entry has the position, the time and the append id that it was exported with. Until the
    end the log is a mirror, which takes no appends. Where the import was broken off, do it again:
    it goes on there. A damaged file is found out before what is damaged is written.
    """
    if sys.stdin is None:  # so Python has it where it was closed from the start
        raise OSError(errno.EBADF, "it is closed", "stdin")
    if sys.stdin.isatty():
        raise click.UsageError("an export is no text: redirect stdin from a file or a pipe")
    with session.connect(create=True) as store:
        done = zlog.import_log(
            store,
            log,
            sys.stdin.buffer,
            width=width,
            promote=not no_promote,
            timeout=session.timeout,
            mac_key=session.mac_key,
        )
    note(f"imported positions {done.start} to {done.end - 1}, {entries_of(done.entries)}")
