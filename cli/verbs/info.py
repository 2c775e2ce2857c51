"""The verb info: one log's tail, size and layout."""

from __future__ import annotations

import click

from zlog import LogStat, View
from zlog.cli.names import log_argument
from zlog.cli.output import Output
from zlog.cli.parameters import json_option
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session
from zlog.cli.tables import bold
from zlog.cli.units import human_bytes
from zlog.cli.verb import Verb
from zlog.cli.verbs.ls import stat_fields


@click.command(
    cls=Verb,
    examples="""
    zlog info orders
    zlog info orders --json | jq .tail
    """,
)
@log_argument
@json_option("Print one JSON object.")
@pass_session
def info(session: Session, log: str, as_json: bool) -> None:
    """Show a log's tail, size and layout."""
    with session.open_log(log) as opened, Output() as out:
        stat = opened.stat()
        if as_json:
            fields = {**stat_fields(stat), "options": dict(opened.view.options)}
            out.line(to_json({**fields, "store": opened.store.url}))
            return
        lines = [
            ("log", stat.name),
            ("store", opened.store.url),
            ("tail", f"{stat.tail:,}"),
            ("trim point", f"{stat.trim_point:,}"),
            ("entries", f"{stat.entries:,}"),
            ("bytes", f"{stat.bytes:,} ({human_bytes(stat.bytes)})"),
            *_stored(stat),
            ("sequencer", _sequencer(stat.sequencer, opened.view)),
            ("epoch", str(stat.epoch)),
            ("layout", _layout(stat)),
            ("id", f"{stat.log_id:016x}"),
            *((f"option {key}", value) for key, value in sorted(opened.view.options.items())),
        ]
        width = max(len(label) for label, _ in lines)
        for label, value in lines:
            out.line(f"{bold(out, label.ljust(width))}  {value}")


def _stored(stat: LogStat) -> list[tuple[str, str]]:
    if stat.stored_bytes == stat.bytes:
        return []
    stored = f"{stat.stored_bytes:,} ({human_bytes(stat.stored_bytes)})"
    ratio = stat.bytes / max(stat.stored_bytes, 1)
    return [("stored", f"{stored}, compressed {ratio:.1f} times")]


def _layout(stat: LogStat) -> str:
    stripes = "1 stripe" if stat.stripes == 1 else f"{stat.stripes} stripes"
    objects = "1 object" if stat.objects == 1 else f"{stat.objects} objects"
    return f"{stripes}, {objects}, width {stat.width}, unit {stat.unit}"


def _sequencer(address: str, view: View) -> str:
    if view.mirror:
        return "none: a mirror takes no appends"
    if not address:
        return "none: writers find the tail themselves"
    if address == "store:":
        return "shared through the store"
    return address
