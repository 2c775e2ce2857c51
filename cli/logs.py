"""Verbs about whole logs: create, ls, info, views, rm."""

from __future__ import annotations

import sys

import click

import zlog
from zlog import LogStat, View
from zlog._layout.admin import WIDTH_DEFAULT
from zlog.cli.output import Output, note
from zlog.cli.parameters import (
    complete_log,
    json_option,
    log_argument,
    log_name,
    settings_option,
    stripe_options,
)
from zlog.cli.render import to_json
from zlog.cli.session import Session, pass_session
from zlog.cli.tables import bold, human_bytes, table
from zlog.cli.verb import Verb
from zlog.view import WIDTH_MAX


@click.command(
    cls=Verb,
    examples="""
    zlog create orders
    zlog --store ceph://logs create orders --width 16
    """,
)
@log_argument
@click.option(
    "--width",
    type=click.IntRange(1, WIDTH_MAX),
    default=WIDTH_DEFAULT,
    show_default=True,
    help="Stripe objects over which positions are spread: more take more writes at once, and make"
    " range reads dearer.",
)
@stripe_options
@settings_option("A setting that travels with the log, for its users. May be given again.")
@click.option("--exist-ok", is_flag=True, help="Succeed if there is a log of this name.")
@pass_session
def create(
    session: Session,
    log: str,
    width: int,
    stripe_bytes: int | None,
    stripe_records: int | None,
    options: dict[str, str],
    exist_ok: bool,
) -> None:
    """Make a log."""
    with session.connect(create=True) as store:
        try:
            zlog.Log.create(
                store,
                log,
                width=width,
                stripe_bytes=stripe_bytes,
                stripe_records=stripe_records,
                options=options,
                timeout=session.timeout,
            ).close()
        except zlog.LogExists:
            if not exist_ok:
                raise
            note(f"there is a log {log!r} in {store.url}")
        else:
            note(f"made log {log!r} in {store.url}")


@click.command(
    cls=Verb,
    examples="""
    zlog ls
    zlog ls --long
    zlog --store ceph://logs/billing ls --json
    """,
)
@click.option("-l", "--long", "long", is_flag=True, help="Show each log's tail and size too.")
@json_option("Print a JSON object per log.")
@pass_session
def ls(session: Session, long: bool, as_json: bool) -> None:
    """List the logs of the store."""
    with session.connect() as store, Output() as out:
        names = zlog.Log.list(store, timeout=session.timeout)
        if not long:
            for name in names:
                out.line(to_json({"name": name}) if as_json else name)
            return
        stats = [stat for name in names if (stat := _stat(session, store, name)) is not None]
        if as_json:
            for stat in stats:
                out.line(to_json(_stat_fields(stat)))
        else:
            table(out, ("LOG", "TAIL", "ENTRIES", "BYTES", "SEQUENCER"), map(_stat_row, stats))


def _stat(session: Session, store: zlog.Store, name: str) -> LogStat | None:
    """Return a log at a glance; None if it was removed since it was listed."""
    try:
        with zlog.Log.open(store, name, timeout=session.timeout) as opened:
            return opened.stat()
    except zlog.LogNotFound:
        return None


def _stat_row(stat: LogStat) -> tuple[str, ...]:
    numbers = str(stat.tail), str(stat.entries), human_bytes(stat.bytes)
    return (stat.name, *numbers, stat.sequencer or "-")


def _stat_fields(stat: LogStat) -> dict[str, object]:
    return {**stat._asdict(), "log_id": f"{stat.log_id:016x}"}


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
            fields = {**_stat_fields(stat), "options": dict(opened.view.options)}
            out.line(to_json({**fields, "store": opened.store.url}))
            return
        lines = [
            ("log", stat.name),
            ("store", opened.store.url),
            ("tail", f"{stat.tail:,}"),
            ("trim point", f"{stat.trim_point:,}"),
            ("entries", f"{stat.entries:,}"),
            ("bytes", f"{stat.bytes:,} ({human_bytes(stat.bytes)})"),
            ("sequencer", _sequencer(stat.sequencer)),
            ("epoch", str(stat.epoch)),
            ("layout", _layout(stat)),
            ("id", f"{stat.log_id:016x}"),
            *((f"option {key}", value) for key, value in sorted(opened.view.options.items())),
        ]
        width = max(len(label) for label, _ in lines)
        for label, value in lines:
            out.line(f"{bold(out, label.ljust(width))}  {value}")


def _layout(stat: LogStat) -> str:
    stripes = "1 stripe" if stat.stripes == 1 else f"{stat.stripes} stripes"
    objects = "1 object" if stat.objects == 1 else f"{stat.objects} objects"
    return f"{stripes}, {objects}, width {stat.width}"


def _sequencer(address: str) -> str:
    if not address:
        return "none: writers find the tail themselves"
    if address == "store:":
        return "shared through the store"
    return address


@click.command(
    cls=Verb,
    examples="""
    zlog views orders
    zlog views orders --json
    """,
)
@log_argument
@json_option("Print a JSON object per view.")
@pass_session
def views(session: Session, log: str, as_json: bool) -> None:
    """Show the log's layouts in its last 128 epochs, oldest first."""
    with session.open_log(log) as opened, Output() as out:
        found = opened.views()
        if as_json:
            for view in found:
                out.line(to_json(_view_fields(view)))
            return
        rows = [
            (str(view.epoch), view.sequencer or "-", " ".join(_stripes(view))) for view in found
        ]
        table(out, ("EPOCH", "SEQUENCER", "STRIPES (start:end × width)"), rows)


def _stripes(view: View) -> list[str]:
    return [
        f"{stripe.start}:{'' if stripe.open else stripe.end}×{stripe.width}"
        for stripe in view.stripes
    ]


def _view_fields(view: View) -> dict[str, object]:
    return {
        "epoch": view.epoch,
        "sequencer": view.sequencer,
        "removed": view.removed,
        "stripes": [
            {
                "id": stripe.id,
                "start": stripe.start,
                "end": None if stripe.open else stripe.end,
                "width": stripe.width,
            }
            for stripe in view.stripes
        ],
        "options": dict(view.options),
    }


@click.command(
    cls=Verb,
    examples="""
    zlog rm orders
    zlog rm --yes orders invoices
    """,
)
@click.argument(
    "log_names",
    metavar="LOG...",
    nargs=-1,
    required=True,
    type=log_name,
    shell_complete=complete_log,
)
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
@pass_session
def rm(session: Session, log_names: tuple[str, ...], yes: bool) -> int:
    """Remove logs with all their entries, for good."""
    if not yes and not (sys.stdin and sys.stdin.isatty()):
        raise click.UsageError("without a terminal to ask on, rm needs --yes")
    with session.connect() as store:
        for name in log_names:
            question = f"Remove log {name!r} of {store.url} with all its entries?"
            if not yes and not click.confirm(question, err=True):
                return 1
            zlog.Log.remove(store, name, timeout=session.timeout)
            note(f"removed log {name!r}")
    return 0
