"""The command views: shows a log's layouts, epoch by epoch."""

from __future__ import annotations

import click

from zlog import Log, Stripe, View
from zlog.cli.appenders import appender_fields, position_source
from zlog.cli.command import Command
from zlog.cli.names import pass_log
from zlog.cli.output import Output
from zlog.cli.parameters import json_option
from zlog.cli.render import to_json
from zlog.cli.tables import table


@click.command(
    cls=Command,
    examples="""
    zlog views orders
    zlog views orders --json
    """,
)
@pass_log
@json_option("Print a JSON object per view.")
def views(log: Log, as_json: bool) -> None:
    """Show the layouts of a log's last 128 epochs, oldest first."""
    found = log.views()
    with Output() as out:
        if as_json:
            for view in found:
                out.line(to_json(view_fields(view)))
            return
        rows = [
            (str(view.epoch), position_source(view), " ".join(map(_stripe, view.stripes)))
            for view in found
        ]
        table(out, ("EPOCH", "SEQUENCER", "STRIPES (start:end × width)"), rows)


def _stripe(stripe: Stripe) -> str:
    return f"{stripe.start}:{'' if stripe.open else stripe.end}×{stripe.width}"


def view_fields(view: View) -> dict[str, object]:
    """Return a view for JSON."""
    return {
        "epoch": view.epoch,
        "sequencer": view.sequencer,
        **appender_fields(view),
        "removed": view.removed,
        "offloads": view.offloads,
        "stripes": [stripe_fields(stripe) for stripe in view.stripes],
        "options": dict(view.options),
    }


def stripe_fields(stripe: Stripe) -> dict[str, object]:
    """Return a stripe for JSON."""
    return {
        "id": stripe.id,
        "start": stripe.start,
        "end": None if stripe.open else stripe.end,
        "width": stripe.width,
        "stripe_unit": stripe.stripe_unit,
    }
