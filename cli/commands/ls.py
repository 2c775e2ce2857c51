"""The command ls: lists the logs of a store."""

from __future__ import annotations

import click

import zlog
from zlog import LogStat, View
from zlog.cli.appenders import appender_fields, position_source
from zlog.cli.command import Command
from zlog.cli.output import Output
from zlog.cli.parameters import json_option
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session
from zlog.cli.several import log_names, report_unfinished_removal
from zlog.cli.tables import table
from zlog.cli.units import human_bytes


@click.command(
    cls=Command,
    examples="""
    zlog ls
    zlog ls --long
    zlog --store ceph://logs/billing ls --json
    """,
)
@click.option("-l", "--long", "long", is_flag=True, help="Show the tail and size of each log too.")
@json_option("Print a JSON object per log.")
@pass_session
def ls(session: Session, long: bool, as_json: bool) -> None:
    """List the logs of the store.

    Without --long, the list also contains logs that are being created or removed. With --long, the
    command opens each log, and prints a message on stderr for each one whose removal is unfinished.
    """
    with session.connect() as store, Output() as out:
        names = log_names(session, store)
        if not long:
            for name in names:
                out.line(to_json({"name": name}) if as_json else name)
            return
        found = (_stat(session, store, name) for name in names)
        seen = (each for each in found if each is not None)
        if as_json:
            for stat, view in seen:
                out.line(to_json(log_fields(stat, view)))
        else:
            rows = (_row(stat, view) for stat, view in seen)
            table(out, ("LOG", "TAIL", "ENTRIES", "BYTES", "OFFLOADED", "SEQUENCER"), rows)


def _stat(session: Session, store: zlog.Store, name: str) -> tuple[LogStat, View] | None:
    """Return the state and view of a log; None if it was removed since it was listed."""
    try:
        with zlog.Log.open(store, name, timeout=session.timeout) as opened:
            return opened.stat(), opened.view
    except zlog.LogNotFound as error:
        report_unfinished_removal(error, name)
        return None


def _row(stat: LogStat, view: View) -> tuple[str, ...]:
    numbers = str(stat.tail), str(stat.entries), human_bytes(stat.bytes)
    offloaded = human_bytes(stat.offloaded.bytes) if stat.offloaded.stripes else "-"
    return (stat.name, *numbers, offloaded, position_source(view))


def log_fields(stat: LogStat, view: View) -> dict[str, object]:
    """Return the state of a log for JSON."""
    changed = {"log_id": f"{stat.log_id:016x}", "offloaded": stat.offloaded._asdict()}
    return {**stat._asdict(), **changed, **appender_fields(view)}
