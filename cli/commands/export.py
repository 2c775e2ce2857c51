"""The command export: writes a log to a file, with its positions and times."""

from __future__ import annotations

import click

import zlog
from zlog.cli import ranges
from zlog.cli.command import Command
from zlog.cli.names import log_argument
from zlog.cli.output import Output, note
from zlog.cli.progress import Progress
from zlog.cli.ranges import PositionSpec
from zlog.cli.render import entries_of
from zlog.cli.session import Session, pass_session


@click.command(
    cls=Command,
    examples="""
    zlog export orders > orders.zlog
    zlog export orders | zstd > orders.zlog.zst
    zlog export orders --from 1000000 > more.zlog        # entries since the last export
    zlog export orders | zlog --store ceph://logs import orders
    """,
)
@log_argument
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
@pass_session
def export(
    session: Session, log: str, begin: PositionSpec, end: PositionSpec, cursors: bool
) -> None:
    """Write a log to stdout, for `zlog import`.

    An export contains each entry with its position, time and append id, and each gap. Two logs with
    the same contents have the same export, byte for byte. Like any reader, the command waits at a
    hole and fills it after the hole timeout. The producers of exactly-once appends are not
    exported.
    """
    with Output() as out, session.open_log(log) as opened:
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
        out.flush()
    note(f"exported {_positions(done)}, {entries_of(done.entries)}")


def _positions(done: zlog.Copied) -> str:
    if done.start == done.end:
        return f"no positions, because the log ends at {done.end}"
    return f"positions {done.start} to {done.end - 1}"
