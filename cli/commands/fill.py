"""The command fill: settles unwritten positions."""

from __future__ import annotations

import click

from zlog import Log
from zlog.cli.command import SignedCommand
from zlog.cli.names import pass_log
from zlog.cli.output import note
from zlog.cli.parameters import POSITION


@click.command(
    cls=SignedCommand,
    examples="zlog fill orders 17",
)
@pass_log
@click.argument("positions", metavar="POSITION...", nargs=-1, type=POSITION, required=True)
def fill(log: Log, positions: tuple[int, ...]) -> None:
    """Fill unwritten positions, so that readers can pass them.

    This is rarely necessary, because readers do so after the hole timeout. The command fails and
    changes nothing if a position holds or has lost an entry. It succeeds if the position is already
    filled or trimmed.
    """
    for position in positions:
        log.fill(position)
        note(f"filled position {position}")
