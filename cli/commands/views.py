"""The command views: shows a log's layouts, epoch by epoch."""

from __future__ import annotations

from collections.abc import Mapping

import click

from zlog import Log, Stripe, StripeFile, View
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
    files = {file.id: file for file in log.stripe_files(found[0].stripes[0].start)}
    with Output() as out:
        if as_json:
            for view in found:
                out.line(to_json(view_fields(view, files)))
            return
        rows = [
            (
                str(view.epoch),
                position_source(view),
                " ".join(_stripe(each, offloaded=each.id in files) for each in view.stripes),
            )
            for view in found
        ]
        table(out, ("EPOCH", "SEQUENCER", "STRIPES (start:end × width)"), rows)


def _stripe(stripe: Stripe, *, offloaded: bool) -> str:
    mark = "*" if offloaded else ""
    return f"{stripe.start}:{'' if stripe.open else stripe.end}×{stripe.width}{mark}"


def view_fields(view: View, files: Mapping[int, StripeFile]) -> dict[str, object]:
    """Return a view for JSON, with the files of its stripes by stripe id."""
    return {
        "epoch": view.epoch,
        "sequencer": view.sequencer,
        **appender_fields(view),
        "removed": view.removed,
        "offloads": view.offloads,
        "stripes": [
            {**stripe_fields(each), "file": files[each.id].url if each.id in files else None}
            for each in view.stripes
        ],
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
