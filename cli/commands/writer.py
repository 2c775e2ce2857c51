"""The command writer: who writes an exclusive log."""

from __future__ import annotations

import click

from zlog import View
from zlog.cli.appenders import appender_fields, since, who_appends
from zlog.cli.command import Command
from zlog.cli.names import log_argument
from zlog.cli.output import Output
from zlog.cli.parameters import json_option
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session
from zlog.cli.tables import details


@click.command(
    cls=Command,
    examples="""
    zlog writer orders
    zlog writer orders --json | jq -r .writer.name
    """,
)
@log_argument
@json_option("Print one JSON object.")
@pass_session
def writer(session: Session, log: str, as_json: bool) -> None:
    """Show the exclusive writer of a log.

    Who it is, since when it has the log, where its confirmed entries end, and the stripe that it
    writes to. Whether it still runs is not known: a writer keeps its log until another one takes
    it, or it is given back.
    """
    with session.open_log(log) as opened, Output() as out:
        tail = opened.tail()
        view = opened.view
        stripe = view.live_stripe
        if as_json:
            where = {"id": stripe.id, "start": stripe.start}
            where.update(width=stripe.width, unit=stripe.unit)
            fields = {"log": log, **appender_fields(view), "epoch": view.epoch, "confirmed": tail}
            out.line(to_json({**fields, "stripe": where}))
            return
        begin = f"{stripe.id}, from position {stripe.start:,} on"
        rows = [
            ("log", log),
            ("writer", who_appends(view)),
            *_writer(view),
            ("epoch", str(view.epoch)),
            ("confirmed" if view.writer else "tail", f"{tail:,}"),
            ("stripe", f"{begin}, width {stripe.width}, unit {stripe.unit}"),
        ]
        details(out, rows)


def _writer(view: View) -> list[tuple[str, str]]:
    if view.writer is None:
        return []
    return [("id", view.writer.id), ("since", since(view.writer))]
