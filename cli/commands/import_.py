"""The command import: creates a log from a file that export wrote."""

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
    zlog import orders --no-promote < orders.zlog     # then add a later export:
    zlog import orders < more.zlog
    """,
)
@log_argument
@width_option("Stripe objects, as for `zlog create`.  [default: those of the exported log]")
@click.option(
    "--no-promote",
    is_flag=True,
    help="Keep the log a mirror, so that later exports can be imported.",
)
@pass_session
def import_(session: Session, log: str, width: int | None, no_promote: bool) -> None:
    """Create a log from an export on stdin.

    Each entry keeps its position, time and append id. During the import, the log is a mirror and
    refuses appends. If an import is interrupted, run it again: it continues where it stopped. The
    command detects damage in the export before it writes the damaged part.
    """
    if sys.stdin is None:  # it was closed when Python started
        raise OSError(errno.EBADF, "it is closed", "stdin")
    if sys.stdin.isatty():
        raise click.UsageError("an export is binary: redirect stdin from a file or a pipe")
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
