"""The command access: who may append to a log."""

from __future__ import annotations

import click

from zlog import Log
from zlog.cli.appenders import appender_fields, since, who_appends
from zlog.cli.command import CommandGroup
from zlog.cli.names import pass_log
from zlog.cli.output import Output, note, say
from zlog.cli.parameters import json_option
from zlog.cli.render import to_json
from zlog.cli.tables import details


@click.group(
    cls=CommandGroup,
    examples="""
    zlog access show orders
    zlog access fence orders
    zlog access read-only orders
    """,
)
def access() -> None:
    """Show and set who may append to a log.

    By default, any client may append to a log. `zlog append --exclusive` makes one client its
    exclusive writer, and the log refuses all others. Logs that are read-only and mirrors accept no
    appends.
    """


@access.command(
    examples="""
    zlog access show orders
    zlog access show orders --json | jq -r .writer.name
    """,
)
@pass_log
@json_option("Print one JSON object.")
def show(log: Log, as_json: bool) -> None:
    """Show who may append to a log.

    For an exclusive log, the command prints the writer, the time at which it took the log, the end
    of the confirmed entries, and the live stripe. It cannot tell whether the writer is still
    running, because a writer keeps its log until it releases it or another writer takes it.
    """
    tail, view = log.tail(), log.view
    writer, stripe = view.writer, view.live_stripe
    with Output() as out:
        if as_json:
            where = {"id": stripe.id, "start": stripe.start}
            where.update(width=stripe.width, stripe_unit=stripe.stripe_unit)
            who = {"log": log.name, **appender_fields(view)}
            out.line(to_json({**who, "epoch": view.epoch, "confirmed": tail, "stripe": where}))
            return
        rows = [("log", log.name), ("writer", who_appends(view))]
        if writer is not None:
            rows += [("id", writer.id), ("since", since(writer))]
        begin = f"{stripe.id}, from position {stripe.start:,} on"
        rows += [
            ("epoch", str(view.epoch)),
            ("confirmed" if writer else "tail", f"{tail:,}"),
            ("stripe", f"{begin}, width {stripe.width}, stripe unit {stripe.stripe_unit}"),
        ]
        details(out, rows)


@access.command(examples="zlog access fence orders")
@pass_log
def fence(log: Log) -> None:
    """Take a log from its exclusive writer and open it to all.

    Even if the writer is still running, it cannot confirm any more entries. Entries that it has
    confirmed stay in the log, and some of its oldest unconfirmed entries may stay too. If the log
    is not exclusive, the command changes nothing.
    """
    before = log.view
    log.fence()
    if before.writer is None:
        note(f"log {log.name!r} has no exclusive writer")
    else:
        note(f"log {log.name!r} no longer belongs to {who_appends(before)}: any client may append")


@access.command(
    "read-only",
    examples="""
    zlog access read-only orders
    zlog access read-only orders --off          # the log accepts appends again
    """,
)
@pass_log
@click.option("--off", is_flag=True, help="Let all clients append again.")
def read_only(log: Log, off: bool) -> None:
    """Refuse all appends to a log.

    You can still read, trim and remove the log. If it has an exclusive writer, that writer is
    fenced. Repeating the command has no further effect.
    """
    if off:
        log.writable()
        note(f"log {log.name!r} is open to all clients")
    else:
        log.read_only()
        note(f"log {log.name!r} is read-only from position {log.tail():,} on")


@access.command(
    examples="""
    zlog access promote orders
    zlog --store file:///backup/store access promote orders
    """,
)
@pass_log
def promote(log: Log) -> None:
    """Turn a mirror into a log that accepts appends.

    After this, `zlog mirror` can no longer copy to the log. Positions that it was in the middle of
    copying are trimmed, so that no entry follows a missing one.
    """
    if not log.view.mirror:
        say(f"log {log.name!r} is not a mirror; `zlog access show {log.name}` shows who may append")
        return
    log.promote()
    note(f"log {log.name!r} accepts appends now, from position {log.tail():,} on")
