"""The command export: writes a log to a file, with its positions and times."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import click

import zlog
from zlog.cli import ranges
from zlog.cli.command import Command
from zlog.cli.output import Output, note, subject
from zlog.cli.progress import Progress
from zlog.cli.ranges import PositionSpec
from zlog.cli.render import entries_of
from zlog.cli.session import Session
from zlog.cli.several import each_log


@click.command(
    cls=Command,
    examples="""
    zlog export orders > orders.zlog
    zlog export orders | zstd > orders.zlog.zst
    zlog export --match '*' --directory backups/
    zlog export orders --from 1000000 > more.zlog        # entries since the last export
    zlog export orders | zlog --store ceph://logs import orders
    """,
)
@each_log
@ranges.from_option(default="earliest", show_default=True)
@click.option(
    "--to",
    "end",
    type=ranges.position_spec,
    metavar="POSITION",
    default="latest",
    help="Stop before this position.  [default: latest]",
)
@click.option("--cursors", is_flag=True, help="Export the log's cursors too.")
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write each log to DIR/LOG.zlog instead of stdout. An older file stays until the new one"
    " is complete.",
)
def export(
    session: Session,
    /,
    log: str,
    begin: PositionSpec,
    end: PositionSpec,
    cursors: bool,
    directory: Path | None,
) -> None:
    """Export a log to stdout, or several logs to files.

    `zlog import` reads an export. It contains each entry with its position, time and append id, and
    each gap. Two logs with the same contents have the same export, byte for byte. Like any reader,
    the command waits at a hole and fills it after the hole timeout. The producers of exactly-once
    appends are not exported.
    """
    if directory is None and subject():
        raise click.UsageError("an export of several logs needs --directory DIR")
    with session.open_log(log) as opened, _output(directory, log) as out:
        if out.is_terminal:
            raise click.UsageError("an export is binary: redirect stdout to a file or a pipe")
        tail = opened.tail()
        start, stop = (ranges.resolve(opened, spec, tail) for spec in (begin, end))
        if start > tail:
            raise click.UsageError(
                f"nothing to export: position {start} is beyond the tail ({tail})"
            )
        if stop < start:
            raise click.UsageError(f"nothing to export: the range from {start} to {stop} is empty")
        with Progress(None, "exporting") as progress:
            done = zlog.export_log(
                opened, out, start=start, end=stop, cursors=cursors, progress=progress.reach
            )
    note(f"exported {_positions(done)}, {entries_of(done.entries)}")


@contextlib.contextmanager
def _output(directory: Path | None, log: str) -> Iterator[Output]:
    """Open stdout, or a new file that replaces an older one at the end of the ``with`` block."""
    if directory is None:
        with Output() as out:
            yield out
        return
    path = directory / f"{log}.zlog"
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with part.open("xb") as file:
            with Output(file) as out:
                yield out
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _positions(done: zlog.Copied) -> str:
    if done.start == done.end:
        return f"no positions, because the log ends at {done.end}"
    return f"positions {done.start} to {done.end - 1}"
