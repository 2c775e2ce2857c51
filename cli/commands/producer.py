"""The command producer: the producers that append to a log exactly once."""

from __future__ import annotations

import click

from zlog import CorruptEntry, Log, ZlogError
from zlog.cli.command import CommandGroup
from zlog.cli.names import PRODUCER_NAME, pass_log
from zlog.cli.output import note
from zlog.cli.parameters import json_option
from zlog.cli.tables import print_rows
from zlog.cli.template import iso


@click.group(
    cls=CommandGroup,
    examples="""
    zlog producer ls orders
    zlog producer rm orders crm
    """,
)
def producer() -> None:
    """Show and remove the producers of exactly-once appends.

    A producer is a program, or a Spark streaming query, that appends each entry exactly once. The
    log records which of its numbered appends are complete, and where the parts of the others are. A
    log can have 1,024 producers, so remove those that no longer exist.
    """


@producer.command(
    examples="""
    zlog producer ls orders
    zlog producer ls orders --json | jq -r 'select(.updated < "2026-01") | .name'
    """,
)
@pass_log
@json_option("Print a JSON object per producer.")
def ls(log: Log, as_json: bool) -> None:
    """List a log's producers and their incomplete sequences.

    An append can consist of several parts. PARTS counts the parts that the log has recorded for
    appends that are not complete. UPDATED is the time at which the producer last began an append or
    completed a sequence number.
    """
    rows = [
        {**each._asdict(), "created": iso(each.created), "updated": iso(each.updated)}
        for each in log.producers()
    ]
    head = {"name": "PRODUCER", "sequence": "SEQUENCE", "parts": "PARTS", "updated": "UPDATED"}
    print_rows(rows, head, as_json=as_json)


@producer.command(
    examples="""
    zlog producer rm orders crm
    """,
)
@pass_log
@click.argument("producers", metavar="PRODUCER...", nargs=-1, type=PRODUCER_NAME, required=True)
def rm(log: Log, producers: tuple[str, ...]) -> None:
    """Remove producers, so that the log forgets their appends.

    The entries stay in the log. Remove a producer only if it no longer exists: if it repeats an
    append later, the entries are in the log twice.
    """
    known = _names(log)
    for name in producers:
        if known is not None and name not in known:
            raise ZlogError(
                f"log {log.name!r} has no producer {name!r}",
                hint="`zlog producer ls LOG` lists them.",
            )
        log.forget_producer(name)
        note(f"removed producer {name!r}")


def _names(log: Log) -> set[str] | None:
    """Return the names of a log's producers, or None if a damaged one cannot be read."""
    try:
        return {each.name for each in log.producers()}
    except CorruptEntry:
        return None
